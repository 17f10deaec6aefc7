from django.apps import AppConfig


class OpsConfig(AppConfig):
    name = "kafkadash.ops"
    label = "ops"

    def ready(self) -> None:
        from kafkadash.domain.messages import register_messages
        from kafkadash.ops import after_collect  # noqa: F401  connects the receiver
        from kafkadash.ops.messages import OPERATION_MESSAGES
        from kafkadash.ops.playground_messages import PLAYGROUND_MESSAGES
        from kafkadash.ops.server_messages import SERVER_MESSAGES

        register_messages(OPERATION_MESSAGES)
        register_messages(SERVER_MESSAGES)
        register_messages(PLAYGROUND_MESSAGES)
