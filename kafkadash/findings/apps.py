from django.apps import AppConfig


class FindingsConfig(AppConfig):
    name = "kafkadash.findings"
    label = "findings"

    def ready(self) -> None:
        from kafkadash.core.messages import register_messages
        from kafkadash.findings.annotations import mark_findings
        from kafkadash.findings.kinds import FactSource, FindingKind
        from kafkadash.findings.messages import (
            FINDING_MESSAGES,
            FINDING_NOTE_MESSAGES,
            FINDING_WRITERS,
            ONCALL_MESSAGES,
        )
        from kafkadash.monitoring.annotations import register_mark_source
        from kafkadash.notifications.kinds import KnownKind, register_kinds

        register_mark_source(mark_findings)
        register_kinds(
            KnownKind(kind.value, kind.about.name, kind.about.state, own=kind.about.source is FactSource.PRODUCT)
            for kind in FindingKind
        )
        register_messages(ONCALL_MESSAGES)
        register_messages(FINDING_MESSAGES, FINDING_WRITERS)
        register_messages(FINDING_NOTE_MESSAGES)
