from django.urls import path

from kafkadash.short_runs import pages

app_name = "short_runs"

urlpatterns = [
    path("changes/<int:number>/items/", pages.draft, name="draft"),
    path("changes/<int:number>/items/pause/", pages.pause, name="pause"),
    path("changes/<int:number>/items/resume/", pages.resume, name="resume"),
    path("changes/<int:number>/items/cancel/", pages.cancel, name="cancel"),
    path("changes/<int:number>/items/rollback/", pages.rollback, name="rollback"),
]
