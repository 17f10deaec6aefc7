from django.apps import AppConfig


class ReassignConfig(AppConfig):
    name = "kafkadash.reassign"
    label = "reassign"

    def ready(self) -> None:
        from kafkadash.clusters.removal import ask_before_removal
        from kafkadash.reassign import kind, plan_work, verify_job
        from kafkadash.reassign.run.left_behind import left_behind, stop_runs

        kind.make_known()
        plan_work.make_known()
        verify_job.make_known()
        ask_before_removal(left_behind, stop_runs)
