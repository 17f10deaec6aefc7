"""Commands on the server, and the checks of /readyz"""

from kafkadash.domain.refusals.entry import Entry

NOTHING_TO_CHANGE = Entry(
    "nothing-to-change",
    "Nothing to change was given.",
    "What can be is listed by `manage.py cluster connect --help`.",
)
TEST_CANCELLED = Entry("test-cancelled", "The test was cancelled by somebody else.", "Start it again.")
TEST_NOT_TAKEN = Entry(
    "test-not-taken",
    "",
    "No worker took the test within {seconds:g} s: is beat running, and a worker for the queues tick and jobs?",
)
TEST_TOO_SLOW = Entry(
    "test-too-slow",
    "The test had no result within {seconds:g} s; it was asked to stop.",
    "Give it longer with --wait.",
)
CHECK_UNKNOWN = Entry("check-unknown", "There is no check {name}.", "There are {known}.")
FILE_NOT_READ = Entry(
    "file-not-read", "{file} cannot be read: {fault}.", "Name a file that can be, or - for standard input."
)
FILE_TOO_LONG = Entry(
    "file-too-long", "{file} has more than the {megabytes} MB that are taken.", "Split it, and verify the parts."
)
FILE_NOT_VERIFIED = Entry(
    "file-not-verified", "{file} cannot be verified: it has {problems}.", "Correct what is printed above."
)
FILE_REFUSED = Entry("file-refused", "{file}: {fault}", "Nothing was written.")
FILE_NOT_WRITTEN = Entry("file-not-written", "{file} cannot be written: {fault}.", "Name another place for it.")
ONE_FILE_FOR_BOTH = Entry(
    "one-file-for-both", "{file} would hold the plan and the report.", "Name a file for each of them."
)
NO_REPORT_OF_A_PLAN = Entry(
    "no-report-of-a-plan", "{file} is no report of a plan.", "Give the one that `manage.py plan` wrote beside it."
)
NO_PLAN_GIVEN = Entry(
    "no-plan-given", "The mode {mode} needs a plan to start from.", "Give its file, in Kafka’s format, with --plan."
)
OPTION_NO_IDS = Entry(
    "option-no-ids", "{option} is “{given}”, which are no ids of brokers.", "Write whole numbers, such as 3,4."
)
OPTION_NO_WHOLE_NUMBER = Entry(
    "option-no-whole-number",
    "{option} is “{given}”, which is no whole number up to 2,147,483,647.",
    "Write one, such as 3.",
)
OPTION_NO_SHARE = Entry(
    "option-no-share", "{option} is “{given}”, which is no number.", "Write a share from 0 to 1, such as 0.8."
)
DISK_USE_RECKONED = Entry(
    "disk-use-reckoned",
    "What is in use on the disk of {brokers} is not told, so it is reckoned from the sizes of the replicas there.",
    "Other files on these disks are not in it.",
)
REPORT_OF_ANOTHER_PLAN = Entry(
    "report-of-another-plan",
    "The report is of another plan, or of another state of the cluster.",
    "Give the one that was written with this plan.",
)
ROWS_AS_NOW = Entry("rows-as-now", "{partitions} of the file {are} as asked already.", "Only the others are judged.")
NOT_COLLECTED = Entry(
    "not-collected",
    "Nothing was collected of {cluster} yet.",
    "See that it is enabled, and beat and a worker for the queue collect run.",
)
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

DATABASE_SILENT = Entry(
    "database-silent", "", "The database cannot be asked: what moves goes on in Kafka, and all else when it is back."
)
REDIS_SILENT = Entry(
    "redis-silent", "", "Redis does not answer: nothing new is collected until it does; nothing is lost."
)
NOT_KNOWN_WITHOUT_DATABASE = Entry(
    "not-known-without-database", "Not known without the database.", "Ask again when it answers."
)
CLOCK_WRONG = Entry(
    "clock-wrong", "", "This machine's clock is {off} {way} the database's, so ages are wrong here: set it right."
)
NEVER_TICKED = Entry("never-ticked", "", "The tick has never run: start beat, and a worker for the queue tick.")
TICK_LATE = Entry("tick-late", "", "The tick last ran {age} ago: is beat running, and a worker for the queue tick?")
COLLECTION_LATE = Entry(
    "collection-late", "", "A collector waits for a worker since {age}: is one running for the queue collect?"
)
COLLECTION_STANDS = Entry(
    "collection-stands",
    "",
    "Collectors wait for a worker, and none has ended a refresh for {age}: restart the worker of the queue collect.",
)
CLUSTERS_SILENT = Entry(
    "clusters-silent", "{silent} of {clusters} {verb} not answer.", "The status board says which, and why."
)
RUN_LATE = Entry("run-late", "", "A run waits for a worker since {age}: is one running for the queue execute?")
