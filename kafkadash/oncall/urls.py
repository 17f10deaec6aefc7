from django.urls import path

from kafkadash.oncall import views

app_name = "oncall"

urlpatterns = [path("", views.board, name="board")]
