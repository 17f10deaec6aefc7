from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "kafkadash.jobs"
    label = "jobs"

    def ready(self) -> None:
        from kafkadash.jobs import connection_test

        connection_test.make_known()
