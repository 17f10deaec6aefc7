from django.apps import AppConfig


class VerifyConfig(AppConfig):
    name = "kafkadash.verify"
    label = "verify"

    def ready(self) -> None:
        from kafkadash.verify import job

        job.make_known()
