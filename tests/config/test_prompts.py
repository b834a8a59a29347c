"""Is what a model is told composed in one order, and to the same bytes wherever it is done?"""

import hashlib
import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from mcp_server.config.load import DATA
from mcp_server.config.prompts import VARIABLES, PromptFolder, Prompts, compose_prompts, list_prompt_keys
from mcp_server.model.posture import AiMode, Posture, Stage, WorkMode
from mcp_server.policy.stages import STAGE_PROMPTS
from tests.clients.served import PATIENCE

ROOT = Path(__file__).parents[2]
SHIPPED = Prompts((PromptFolder("shipped", DATA / "prompts"),))
VALUES = {name: f"<{name}> é 日" for name in VARIABLES}
POSTURES = [
    replace(Posture(), ai_mode=ai_mode, reasoning=reasoning) for ai_mode in AiMode for reasoning in (False, True)
]
EVERY = [(posture, stage) for posture in POSTURES for stage in Stage]


def every() -> bytes:
    return "\f".join(compose_prompts(SHIPPED, posture, stage, VALUES) for posture, stage in EVERY).encode()


@pytest.mark.parametrize(("posture", "stage"), EVERY)
def test_the_order_is_base_root_mode_stage_reasoning(posture: Posture, stage: Stage) -> None:
    keys = list_prompt_keys(posture, stage)
    assert keys[:3] == ("base/system", "base/project_root_context", f"{posture.ai_mode}/mode_addition")
    reasoned = posture.reasoning and posture.ai_mode is AiMode.AGENT
    assert [key for key in keys[4:] if "reasoning" in key] == list(keys[4:])
    assert len(keys) == 4 + reasoned
    said = compose_prompts(SHIPPED, posture, stage, VALUES)
    places = [said.index(SHIPPED.render_prompt(key, VALUES)) for key in keys]
    assert places == sorted(places) and places[0] == 0


def test_the_page_has_the_table_in_use() -> None:
    rows = [
        f"| `{stage}` | {' '.join(f'`{key}`' for key in prompts.text)} |"
        f" {' '.join(f'`{key}`' for key in prompts.reasoning)} |"
        for stage, prompts in STAGE_PROMPTS.items()
    ]
    assert [row for row in rows if row not in (DATA / "docs" / "prompts.md").read_text()] == []


def test_other_axes_change_nothing() -> None:
    for mode, stage in itertools.product(WorkMode, Stage):
        assert list_prompt_keys(Posture(work_mode=mode), stage) == list_prompt_keys(Posture(), stage)


def test_reasoning_is_asked_for_when_the_person_has_it_on_and_only_then() -> None:
    for stage in Stage:
        on, off = (compose_prompts(SHIPPED, Posture(reasoning=one), stage, VALUES) for one in (True, False))
        assert on.startswith(off.removesuffix("\n")) and on != off
        assert "`think`" not in off


@pytest.mark.parametrize(
    ("locale", "seed"), [("C", "0"), ("tr_TR.UTF-8", "12345"), ("de_DE.ISO-8859-1", "1")], ids=["C", "tr", "de"]
)
def test_the_same_bytes_in_another_process_and_locale(locale: str, seed: str) -> None:
    code = "import sys,hashlib; from tests.config.test_prompts import every;"
    code += "sys.stdout.write(hashlib.sha256(every()).hexdigest())"
    said = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PATH": os.defpath, "LC_ALL": locale, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "TZ": "Asia/Tokyo"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert said.stdout == hashlib.sha256(every()).hexdigest()


def test_three_runs_give_the_same_bytes() -> None:
    assert every() == every() == every()
