"""The table `[notify]`: what it may say, and how it is refused."""

from pathlib import Path

import pytest

from interlock.gates.config import Config, load_config
from interlock.gates.errors import ConfigError
from interlock.notify.settings import Settings, build
from tests.table import each_row

HOOK = 'webhook = "https://hooks.example.org/a?b=c"\nwebhook_key_env = "HOOK_KEY"'


def configured(root: Path, text: str) -> Config:
    """Return the configuration with a table of this text."""
    (root / "interlock.toml").write_text(f"[notify]\n{text}\n", encoding="utf-8")
    return load_config(root)


def test_a_table_says_how_people_are_notified_and_is_no_part_of_the_policy(tmp_path: Path) -> None:
    config = configured(tmp_path, f'command = ["./notify.sh", "-a"]\napprise_env = "PHONE"\n{HOOK}')
    settings = build(config.notify)
    assert settings == Settings(("./notify.sh", "-a"), "https://hooks.example.org/a?b=c", "HOOK_KEY", "PHONE")
    assert settings.channels == ("command", "webhook", "apprise")
    assert build(Config().notify).channels == ()
    assert config.fingerprint() == Config().fingerprint()


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "[::1]", "localhost"])
def test_a_webhook_on_this_machine_needs_no_tls(tmp_path: Path, host: str) -> None:
    assert configured(tmp_path, f'webhook = "http://{host}/x"\nwebhook_key_env = "K"').notify


@each_row(
    ("text", "code", "key"),
    [
        ('comand = ["x"]', "CFG103", "comand"),
        ('command = "./notify.sh"', "CFG104", "command"),
        ("command = []", "CFG104", "command"),
        ("apprise_env = 1", "CFG104", "apprise_env"),
        ('webhook = "https://h.example.org"', "CFG104", "webhook_key_env"),
        (HOOK.replace("https", "http"), "CFG104", "webhook"),
        (HOOK.replace("hooks", "ada:secret@hooks"), "CFG104", "webhook"),
        (HOOK.replace("HOOK_KEY", "s3cr3t-key!"), "CFG104", "webhook_key_env"),
    ],
)
def test_a_fault_is_refused_at_its_key(tmp_path: Path, text: str, code: str, key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        configured(tmp_path, text)
    assert [(row.code, row.field) for row in refused.value.problems] == [(code, f"notify.{key}")]
    assert all(row.fix for row in refused.value.problems)
