"""Is every address that is not on the public network known for what it is, however it is written?"""

from ipaddress import ip_network

import pytest

from mcp_server.guards.network.addresses import METADATA, NOT_PUBLIC, describe_if_not_public, is_always_closed


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "172.32.0.1", "2606:4700:4700::1111", "::ffff:8.8.8.8"])
def test_a_public_address_is_public(address: str) -> None:
    assert describe_if_not_public(address) is None
    assert not is_always_closed(address)


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("127.0.0.1", "this machine"),
        ("0.0.0.0", "this machine"),
        ("10.1.2.3", "a private network"),
        ("172.31.255.255", "a private network"),
        ("192.168.0.1", "a private network"),
        ("100.64.0.1", "a provider's internal network"),
        ("::1", "not on the public network"),
        ("fe80::1%eth0", "where a cloud keeps a machine's keys"),
        ("fd00::1", "not on the public network"),
        ("::ffff:127.0.0.1", "this machine"),
        ("64:ff9b::10.0.0.1", "a private network"),
        ("2002:7f00:1::", "a relay to other addresses"),
    ],
)
def test_any_other_is_named(address: str, what: str) -> None:
    assert describe_if_not_public(address) == what


@pytest.mark.parametrize("network", METADATA)
def test_where_a_cloud_keeps_its_keys_nothing_opens(network: str) -> None:
    parsed = ip_network(network)
    for address in (parsed[0], parsed[-1]):
        assert is_always_closed(str(address))
        assert describe_if_not_public(str(address))
    if parsed.version == 4:
        assert is_always_closed(f"::ffff:{parsed[0]}")


@pytest.mark.parametrize("network", NOT_PUBLIC)
def test_the_ends_of_every_network_belong_to_it(network: str) -> None:
    parsed = ip_network(network)
    assert describe_if_not_public(str(parsed[0]))
    assert describe_if_not_public(str(parsed[-1]))
