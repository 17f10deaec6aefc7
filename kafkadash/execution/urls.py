from django.urls import path

from kafkadash.execution.pages import ending, throttle_ledger, views

app_name = "execution"

urlpatterns = [
    path("changes/<int:number>/run/cancel/", ending.run_cancel, name="run_cancel"),
    path("changes/<int:number>/run/give-up/", ending.run_give_up, name="run_give_up"),
    path("changes/<int:number>/run/ledger/", throttle_ledger.run_ledger, name="run_ledger"),
    path("changes/<int:number>/report/", ending.report, name="report"),
    path("changes/<int:number>/report/report.md", ending.report_markdown, name="report_markdown"),
    path("changes/<int:number>/report/report.json", ending.report_json, name="report_json"),
    path("changes/<int:number>/rollback/", ending.rollback, name="rollback"),
    path("changes/<int:number>/run/", views.run, name="run"),
    path("changes/<int:number>/run/moves/", views.run_moves, name="run_moves"),
    path("changes/<int:number>/run/chart/", views.run_chart, name="run_chart"),
    path("changes/<int:number>/pause/", views.run_pause, name="run_pause"),
    path("changes/<int:number>/resume/", views.run_resume, name="run_resume"),
    path("changes/<int:number>/run/throttle/", views.run_throttle, name="run_throttle"),
    path("changes/<int:number>/run/parallel/", views.run_parallel, name="run_parallel"),
    path("changes/<int:number>/run/row/", views.run_row, name="run_row"),
    path("changes/<int:number>/run/replan/", views.run_replan, name="run_replan"),
    path("changes/<int:number>/run/foreign/", views.run_foreign, name="run_foreign"),
]
