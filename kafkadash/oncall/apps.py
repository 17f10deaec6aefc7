from django.apps import AppConfig


class OnCallConfig(AppConfig):
    name = "kafkadash.oncall"
    label = "oncall"

    def ready(self) -> None:
        from kafkadash.domain.messages import register_messages
        from kafkadash.oncall.messages import ONCALL_MESSAGES

        register_messages(ONCALL_MESSAGES)
