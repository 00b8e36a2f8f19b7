"""Asks a rate limit service: a request in JSON a line from standard input, an answer in JSON a line to standard output.

    python ask.py ADDRESS [TOKEN [AUTHORITY]]

With the file of an authority it asks over TLS, and trusts nobody else. A line that is only a word asks how the service of that name is; `-` stands for the server as a whole.
"""

import json
import sys

import grpc
from envoy.service.ratelimit.v3 import rls_pb2, rls_pb2_grpc
from google.protobuf import json_format


def main():
    metadata = [("authorization", "Bearer " + sys.argv[2])] if len(sys.argv) > 2 else []
    with open_channel() as channel:
        service = rls_pb2_grpc.RateLimitServiceStub(channel)
        for line in sys.stdin:
            try:
                told = ask(service, metadata, line) if line.startswith("{") else health(channel, line.strip())
            except grpc.RpcError as error:
                told = {"error": error.code().name, "details": error.details()}
            print(json.dumps(told), flush=True)


def open_channel():
    if len(sys.argv) <= 3:
        return grpc.insecure_channel(sys.argv[1])
    with open(sys.argv[3], "rb") as authority:
        return grpc.secure_channel(sys.argv[1], grpc.ssl_channel_credentials(authority.read()))


def ask(service, metadata, line):
    request = json_format.Parse(line, rls_pb2.RateLimitRequest())
    response = service.ShouldRateLimit(request, timeout=10, metadata=metadata)
    return json_format.MessageToDict(response)


def health(channel, name):
    name = b"" if name == "-" else name.encode()
    request = b"\n" + bytes([len(name)]) + name if name else b""
    check = channel.unary_unary("/grpc.health.v1.Health/Check")
    # The one field of the answer is its first; 1 is serving, 2 is not.
    return {"health": check(request, timeout=10)[-1]}


main()
