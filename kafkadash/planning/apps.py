from django.apps import AppConfig


class PlanningConfig(AppConfig):
    name = "kafkadash.planning"
    label = "planning"

    def ready(self) -> None:
        from kafkadash.core.messages import register_messages
        from kafkadash.planning import job
        from kafkadash.planning.messages import (
            CHECK_MESSAGES,
            CHECK_TITLES,
            CHECK_WRITERS,
            FILE_MESSAGES,
            FILE_PARTS,
            FILE_WRITERS,
            JSON_FAULTS,
            PLAN_MESSAGES,
            PLAN_WRITERS,
            REASSIGNMENT_MESSAGES,
            RULE_NAMES,
        )

        job.make_known()
        register_messages(REASSIGNMENT_MESSAGES)
        register_messages(FILE_MESSAGES, FILE_WRITERS)
        register_messages(FILE_PARTS)
        register_messages(JSON_FAULTS)
        register_messages(PLAN_MESSAGES, PLAN_WRITERS)
        register_messages(CHECK_MESSAGES, CHECK_WRITERS)
        register_messages(CHECK_TITLES)
        register_messages(RULE_NAMES)
