"""Commands on the server, and the checks of /readyz"""

from kafkadash.domain.refusals.entry import Entry

DATABASE_URL_WRONG = Entry(
    "database-url-wrong", "DATABASE_URL cannot be read.", "Write postgres://user:password@host:port/name."
)
SECRET_KEY_TOO_SHORT = Entry(
    "secret-key-too-short",
    "SECRET_KEY, or a key of SECRET_KEY_FALLBACKS, has fewer than {least} characters, so sessions could be forged.",
    "Set a long random text; docker-compose.yml says how to make one.",
)
SETTING_NOT_USABLE = Entry(
    "setting-not-usable", "{name} is {value!r}, which is not {kind}.", "Correct it in the environment of kafkadash."
)
LEVEL_UNKNOWN = Entry("level-unknown", "", "LOG_LEVEL is {level!r}; use DEBUG, INFO, WARNING, ERROR or CRITICAL.")
