// ioredis asks the door for Redis clients: the port is its argument. Says "ok" where everything was as it should be.
"use strict";

const assert = require("node:assert");
const Redis = require("ioredis");

async function main() {
  const client = new Redis({ port: Number(process.argv[2]), password: "sesame", connectionName: "tests" });
  assert.equal(await client.ping(), "PONG");
  assert.equal(await client.client("GETNAME"), "tests");
  assert.deepEqual(await client.call("CL.THROTTLE", "js:u", 15, 30, 60, 1), [0, 16, 15, -1, 2]);
  assert.equal(await client.del("js:u"), 1);

  const key = Buffer.from([0xff, 0x00, 0x0d, 0x0a]);
  assert.deepEqual(await client.call("CL.THROTTLE", key, 0, 1, 60), [0, 1, 0, -1, 60]);
  assert.equal(await client.exists(key), 1);

  const answers = await client
    .pipeline(Array.from({ length: 4 }, () => ["call", "TG.CHECK", "slow", "js:alice"]))
    .exec();
  assert.deepEqual(answers.map(([error, told]) => [error, told[0]]), [[null, 0], [null, 0], [null, 0], [null, 1]]);

  // A hundred at once over one connection: as many pass as may.
  const asked = Array.from({ length: 100 }, () => client.call("CL.THROTTLE", "js:many", 9, 1, 3600));
  assert.equal((await Promise.all(asked)).filter(([limited]) => limited === 0).length, 10);

  await assert.rejects(client.call("TG.CHECK", "slwo", "alice"), /did you mean/);
  const entered = await client.call("TG.ENTER", "workers", "js");
  assert.equal(entered[0], 0);
  assert.equal(await client.call("TG.LEAVE", "workers", "js", entered[5]), 1);
  assert.equal(await client.quit(), "OK");
  console.log("ok");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
