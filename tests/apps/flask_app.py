"""A Flask application that says which view ran, and what it read of the request."""

from flask import Flask, request

app = Flask(__name__)


def seen(view):
    return {
        "view": view,
        "authorization": request.headers.get("authorization"),
        "forwarded_for": request.headers.get("x-forwarded-for"),
        "user": request.headers.get("x-user"),
        "session": request.cookies.get("session"),
        "query": request.args.get("id"),
    }


@app.get("/api/login")
def login():
    return seen("login")


@app.get("/users/<name>")
def user(name):
    return seen("user " + name)


@app.get("/", defaults={"path": ""})
@app.get("/<path:path>")
def anything(path):
    return seen("anything " + path)
