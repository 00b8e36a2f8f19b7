// A Node application that says which view ran, and what it read of the request. Its argument is the port.
"use strict";

const http = require("node:http");

function view(path) {
  if (path === "/api/login") return "login";
  const user = /^\/users\/([^/]+)$/.exec(path);
  return user ? `user ${user[1]}` : `anything ${path.slice(1)}`;
}

http
  .createServer((request, response) => {
    const url = new URL(request.url, "http://app");
    const cookie = /(?:^|;\s*)session=([^;]*)/.exec(request.headers.cookie ?? "");
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({
        view: view(decodeURIComponent(url.pathname)),
        authorization: request.headers.authorization ?? null,
        forwarded_for: request.headers["x-forwarded-for"] ?? null,
        user: request.headers["x-user"] ?? null,
        session: cookie && decodeURIComponent(cookie[1]),
        query: url.searchParams.get("id"),
      }),
    );
  })
  .listen(Number(process.argv[2]), "127.0.0.1");
