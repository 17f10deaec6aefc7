from django.apps import AppConfig


class DevtoolsConfig(AppConfig):
    name = "kafkadash.devtools"
    label = "devtools"

    def ready(self) -> None:
        from kafkadash.core.messages import register_messages
        from kafkadash.devtools.messages import DEMO_MESSAGES, PLAYGROUND_MESSAGES, SERVER_MESSAGES

        register_messages(DEMO_MESSAGES)
        register_messages(SERVER_MESSAGES)
        register_messages(PLAYGROUND_MESSAGES)
