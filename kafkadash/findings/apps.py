from django.apps import AppConfig


class FindingsConfig(AppConfig):
    name = "kafkadash.findings"
    label = "findings"

    def ready(self) -> None:
        from kafkadash.core.messages import register_messages
        from kafkadash.findings.messages import (
            FINDING_MESSAGES,
            FINDING_NOTE_MESSAGES,
            FINDING_WRITERS,
            ONCALL_MESSAGES,
        )

        register_messages(ONCALL_MESSAGES)
        register_messages(FINDING_MESSAGES, FINDING_WRITERS)
        register_messages(FINDING_NOTE_MESSAGES)
