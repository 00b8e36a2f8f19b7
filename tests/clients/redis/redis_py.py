"""redis-py asks the door for Redis clients: the port is its argument. Says "ok" where everything was as it should be."""

import sys

import redis

port = int(sys.argv[1])

for protocol in (2, 3):
    client = redis.Redis(port=port, protocol=protocol, password="sesame", client_name="tests", socket_timeout=30)
    prefix = f"py{protocol}"
    assert client.ping() is True
    assert client.echo("hello") == b"hello"
    assert client.client_getname() in ("tests", b"tests")
    assert client.client_info()["name"] == "tests"
    assert client.info("server")["redis_version"] == "7.0.0"

    # As redis-cell's own documentation has it.
    assert client.execute_command("CL.THROTTLE", f"{prefix}:u", 15, 30, 60, 1) == [0, 16, 15, -1, 2]
    assert client.exists(f"{prefix}:u") == 1
    assert 1 <= client.ttl(f"{prefix}:u") <= 2
    assert client.get(f"{prefix}:u").isdigit()
    assert client.delete(f"{prefix}:u") == 1
    assert client.get(f"{prefix}:u") is None

    # The limits of the rule file.
    told = client.execute_command("TG.CHECK", "slow", f"{prefix}:alice")
    assert told[:4] == [0, 3, 2, -1] and told[4] > 1000, told
    with client.pipeline(transaction=False) as pipe:
        for _ in range(4):
            pipe.execute_command("TG.CHECK", "slow", f"{prefix}:alice")
        limited = [answer[0] for answer in pipe.execute()]
    assert limited == [0, 0, 1, 1], limited
    try:
        client.execute_command("TG.CHECK", "slwo", "alice")
        raise AssertionError("no such limit")
    except redis.ResponseError as error:
        assert "did you mean" in str(error), error

    *told, permit = client.execute_command("TG.ENTER", "workers", prefix)
    assert told[0] == 0 and permit is not None
    *told, nothing = client.execute_command("TG.ENTER", "workers", prefix)
    assert told[0] == 1 and told[3] == -2 and nothing is None, told
    assert client.execute_command("TG.RENEW", "workers", prefix, permit) == 1
    assert client.execute_command("TG.LEAVE", "workers", prefix, permit) == 1

try:
    redis.Redis(port=port, password="barley").ping()
    raise AssertionError("let in with a wrong word")
except redis.AuthenticationError:
    pass

print("ok")
