from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "kafkadash.jobs"
    label = "jobs"

    def ready(self) -> None:
        from kafkadash.core.messages import register_messages
        from kafkadash.jobs import connection_test
        from kafkadash.jobs.messages import JOB_MESSAGES

        connection_test.make_known()
        register_messages(JOB_MESSAGES)
