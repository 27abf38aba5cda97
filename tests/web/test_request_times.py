"""The times of requests are written as the library for Prometheus writes those that it counts."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Histogram, generate_latest

from palaver.web.metrics import RequestTimes

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


def test_times_are_in_the_buckets_of_a_histogram() -> None:
    times, ours, original = RequestTimes(), CollectorRegistry(), CollectorRegistry()
    ours.register(times)
    name, text = "http_request_duration_seconds", "Time from a request to the start of its response."
    labels = ["method", "route", "status"]
    histogram = Histogram(name, text, labels, buckets=BUCKETS, namespace="palaver", registry=original)
    for route, seconds in (("one", 0.0), ("one", 0.001), ("two", 0.0011), ("one", 7.5), ("one", 10), ("two", 11.0)):
        times.record("GET", route, 200, seconds)
        histogram.labels("GET", route, "200").observe(seconds)
    expected = generate_latest(original).decode().partition("# HELP palaver_http_request_duration_seconds_created")[0]
    assert generate_latest(ours).decode() == expected
