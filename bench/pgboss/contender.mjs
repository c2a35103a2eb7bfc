// The acts of bench/act.py for pg-boss: node contender.mjs ACT ARGUMENTS-AS-JSON
import fs from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { PgBoss } from "pg-boss";

const [what, text] = process.argv.slice(2);
const given = JSON.parse(text);
const FIRST_STAMP = 64;
const WARM_UP = 50;
const QUEUE = "noop";

// node-postgres reads a socket's folder from `host=`, but wants a host in the address all the same.
const connectionString = given.place.replace("@/", "@localhost/");

const file = given.tally ? fs.openSync(given.tally, "r+") : null;
const cell = Buffer.alloc(8);
function write(slot, value) {
  cell.writeBigUInt64LE(value);
  fs.writeSync(file, cell, 0, 8, slot * 8);
}
function read(slot) {
  fs.readSync(file, cell, 0, 8, slot * 8);
  return cell.readBigUInt64LE();
}

async function withBoss(options, use) {
  const boss = new PgBoss({ connectionString, schedule: false, supervise: false, ...options });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  const answer = await use(boss);
  await boss.stop({ graceful: false });
  return answer;
}

const acts = {
  async set_up() {
    await withBoss({}, (boss) => boss.createQueue(QUEUE, { notify: true }));
  },

  async enqueue() {
    return await withBoss({ max: given.callers, migrate: false }, async (boss) => {
      for (let n = 0; n < WARM_UP; n++) await boss.send(QUEUE, { n });
      const began = performance.now();
      const until = began + given.seconds * 1000;
      let jobs = 0;
      async function caller() {
        while (performance.now() < until) {
          await boss.send(QUEUE, { n: jobs });
          jobs++;
        }
      }
      await Promise.all(Array.from({ length: given.callers }, caller));
      return { jobs, seconds: (performance.now() - began) / 1000 };
    });
  },

  async fill() {
    return await withBoss({ max: 1, migrate: false }, async (boss) => {
      const began = performance.now();
      for (let first = 0; first < given.jobs; first += 1000) {
        const length = Math.min(1000, given.jobs - first);
        await boss.insert(QUEUE, Array.from({ length }, (_, i) => ({ data: { n: first + i } })));
      }
      return { jobs: given.jobs, seconds: (performance.now() - began) / 1000 };
    });
  },

  async work() {
    let entered = 0;
    // A write is a system call here, so most counts are written a little late; the last one is not.
    const late = setInterval(() => write(2 * given.worker, BigInt(entered)), 5);
    late.unref();
    function noop(data) {
      if (given.stamping) {
        write(FIRST_STAMP + 2 * data.n + 1, process.hrtime.bigint());
        return;
      }
      if (entered === 0) {
        write(2 * given.worker + 1, process.hrtime.bigint());
      }
      entered++;
      if (entered === 1 || entered === given.jobs) write(2 * given.worker, BigInt(entered));
    }
    await withBoss({ migrate: false, supervise: true, useListenNotify: true }, async (boss) => {
      await boss.work(QUEUE, { batchSize: 500, burstWhenBatchFull: true }, async (jobs) => {
        for (const job of jobs) noop(job.data);
      });
      await new Promise(() => setInterval(() => {}, 60_000));
    });
  },

  async ping() {
    await withBoss({ max: 1, migrate: false }, async (boss) => {
      for (let n = 0; n < given.count; n++) {
        await sleep(20 + Math.random() * 100);
        write(FIRST_STAMP + 2 * n, process.hrtime.bigint());
        await boss.send(QUEUE, { n });
        while (read(FIRST_STAMP + 2 * n + 1) === 0n) await sleep(2);
      }
    });
  },
};

console.log(JSON.stringify((await acts[what]()) ?? null));
