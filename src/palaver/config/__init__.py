"""Settings: `config.yaml`, the environment and the database, as values.

The room owns the keys of the file, the names of the variables, which of the layers wins, and the key of stored secrets.
A setting is declared once, as an annotated field of a section (`agent_rules`, `schema`; `validators` says how): its
name, type, default, valid values, help text, secrecy and environment variable stand there, and its section is the value
that the rooms use. `setting_templates` derives the description of all settings, `settings` computes what is not in one
section, and `layers` reads and combines the sources.

Always true: all problems are reported at once, each with file, line, key and what is allowed, or with the name of the
variable; nothing is guessed; no value that may be a secret is shown. Without a config.yaml neither pydantic nor a
YAML parser is imported. Every key and every variable is in docs/reference/settings.md.
"""

from palaver.config.environment import CHAT_PLATFORMS, ENVIRONMENT_VARIABLES, EnvironmentVariable
from palaver.config.layers import find_home, load_settings
from palaver.config.setting_templates import list_setting_keys
from palaver.config.settings import AccountEntry, FixedLayers, Settings
from palaver.config.validation import FILE_NAME
from palaver.core.files import SECRET_BYTES, load_install_secret

__all__ = [
    "CHAT_PLATFORMS",
    "ENVIRONMENT_VARIABLES",
    "FILE_NAME",
    "SECRET_BYTES",
    "AccountEntry",
    "EnvironmentVariable",
    "FixedLayers",
    "Settings",
    "find_home",
    "list_setting_keys",
    "load_install_secret",
    "load_settings",
]
