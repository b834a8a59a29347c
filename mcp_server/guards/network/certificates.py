"""Which certificates are trusted? Those of this machine, and the operator's own; never what the environment names.

OpenSSL reads SSL_CERT_FILE and SSL_CERT_DIR by itself when it looks for its usual places. Whoever starts the server
sets its environment, so the places are read here without them.
"""

import ssl
import sys
from pathlib import Path

BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Gentoo
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # Fedora, Red Hat
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # Alpine, BSD
)


def load_trust_context(authorities: str = "") -> ssl.SSLContext:
    """`authorities` is a file with more certificates in PEM. Raises OSError or ssl.SSLError if it cannot be read."""
    context = _build_system_context()
    if authorities:
        context.load_verify_locations(authorities)
    return context


def _build_system_context() -> ssl.SSLContext:
    if sys.platform != "linux":
        import httpx2

        return httpx2.create_ssl_context(trust_env=False)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    compiled = ssl.get_default_verify_paths()
    bundle = next((path for path in (compiled.openssl_cafile, *BUNDLES) if Path(path).is_file()), None)
    folder = compiled.openssl_capath if Path(compiled.openssl_capath).is_dir() else None
    if bundle or folder:
        context.load_verify_locations(bundle, folder)
    return context
