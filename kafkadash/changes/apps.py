from django.apps import AppConfig


class ChangesConfig(AppConfig):
    name = "kafkadash.changes"
    label = "changes"

    def ready(self) -> None:
        from kafkadash.changes.messages import (
            CHANGE_MESSAGES,
            CHECK_TITLES,
            RIGHTS_MESSAGES,
            RISK_MESSAGES,
            RISK_WRITERS,
            WORKFLOW_MESSAGES,
        )
        from kafkadash.core.messages import register_messages

        register_messages(CHANGE_MESSAGES)
        register_messages(WORKFLOW_MESSAGES)
        register_messages(RIGHTS_MESSAGES)
        register_messages(CHECK_TITLES)
        register_messages(RISK_MESSAGES, RISK_WRITERS)
