from django.apps import AppConfig


class ExecutionConfig(AppConfig):
    name = "kafkadash.execution"
    label = "execution"

    def ready(self) -> None:
        from kafkadash.clusters.removal import ask_before_removal
        from kafkadash.core.messages import register_messages
        from kafkadash.execution import kind
        from kafkadash.execution.command_answers import ORDER_MESSAGES
        from kafkadash.execution.messages import (
            LEDGER_MESSAGES,
            LEDGER_WRITERS,
            REPORT_NOTE_MESSAGES,
            REPORT_NOTE_WRITERS,
            ROW_MESSAGES,
            RUN_MESSAGES,
            RUN_WRITERS,
            STUCK_MESSAGES,
            STUCK_WRITERS,
        )
        from kafkadash.execution.models import MoveState
        from kafkadash.execution.pages.summaries import mark_runs
        from kafkadash.execution.rollback import left_words, way_back
        from kafkadash.execution.worker.finish import left_behind, stop_runs
        from kafkadash.monitoring.annotations import register_mark_source
        from kafkadash.planning.proposal import RollbackSource, register_rollback_source

        kind.make_known()
        ask_before_removal(left_behind, stop_runs)
        register_mark_source(mark_runs)
        register_rollback_source(RollbackSource(left_words, way_back))
        register_messages(ROW_MESSAGES)
        register_messages(RUN_MESSAGES, RUN_WRITERS)
        register_messages(STUCK_MESSAGES, STUCK_WRITERS)
        register_messages(LEDGER_MESSAGES, LEDGER_WRITERS)
        register_messages(ORDER_MESSAGES, {"row_state": lambda state: MoveState(state).label})
        register_messages(REPORT_NOTE_MESSAGES, REPORT_NOTE_WRITERS)
