from django.apps import AppConfig


class ReassignConfig(AppConfig):
    name = "kafkadash.reassign"
    label = "reassign"

    def ready(self) -> None:
        from kafkadash.reassign import verify_job

        verify_job.make_known()
