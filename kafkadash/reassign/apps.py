from django.apps import AppConfig


class ReassignConfig(AppConfig):
    name = "kafkadash.reassign"
    label = "reassign"

    def ready(self) -> None:
        from kafkadash.clusters.removal import ask_before_removal
        from kafkadash.domain.messages import register_messages
        from kafkadash.reassign import kind, plan_work, verify_job
        from kafkadash.reassign.messages import REASSIGNMENT_MESSAGES
        from kafkadash.reassign.models import MoveState
        from kafkadash.reassign.run.left_behind import left_behind, stop_runs
        from kafkadash.reassign.run.order_answers import ORDER_MESSAGES
        from kafkadash.reassign.run.row_messages import ROW_MESSAGES
        from kafkadash.reassign.run.run_messages import RUN_MESSAGES, RUN_WRITERS
        from kafkadash.reassign.run.stuck_messages import STUCK_MESSAGES, STUCK_WRITERS

        kind.make_known()
        plan_work.make_known()
        verify_job.make_known()
        ask_before_removal(left_behind, stop_runs)
        register_messages(REASSIGNMENT_MESSAGES)
        register_messages(ROW_MESSAGES)
        register_messages(RUN_MESSAGES, RUN_WRITERS)
        register_messages(STUCK_MESSAGES, STUCK_WRITERS)
        register_messages(ORDER_MESSAGES, {"row_state": lambda state: MoveState(state).label})
