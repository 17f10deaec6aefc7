from django.apps import AppConfig


class ExportConfig(AppConfig):
    name = "kafkadash.export"
    label = "export"

    def ready(self) -> None:
        from kafkadash.core.messages import register_messages
        from kafkadash.export.messages import EXPORT_MESSAGES

        register_messages(EXPORT_MESSAGES)
