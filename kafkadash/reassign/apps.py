from django.apps import AppConfig


class ReassignConfig(AppConfig):
    name = "kafkadash.reassign"
    label = "reassign"

    def ready(self) -> None:
        from kafkadash.reassign import kind, plan_work, verify_job

        kind.make_known()
        plan_work.make_known()
        verify_job.make_known()
