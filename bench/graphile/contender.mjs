// The acts of bench/act.py for graphile-worker: node contender.mjs ACT ARGUMENTS-AS-JSON
import fs from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { makeWorkerUtils, run, Logger } from "graphile-worker";

const [what, text] = process.argv.slice(2);
const given = JSON.parse(text);
const logger = new Logger(() => () => {});
const FIRST_STAMP = 64;
const WARM_UP = 50;

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

async function withUtils(connections, use) {
  const pgPool = new pg.Pool({ connectionString, max: connections });
  const utils = await makeWorkerUtils({ pgPool, logger });
  const answer = await use(utils);
  await utils.release();
  await pgPool.end();
  return answer;
}

const acts = {
  async set_up() {
    await withUtils(1, (utils) => utils.migrate());
  },

  async enqueue() {
    return await withUtils(given.callers, async (utils) => {
      for (let n = 0; n < WARM_UP; n++) await utils.addJob("noop", { n });
      const began = performance.now();
      const until = began + given.seconds * 1000;
      let jobs = 0;
      async function caller() {
        while (performance.now() < until) {
          await utils.addJob("noop", { n: jobs });
          jobs++;
        }
      }
      await Promise.all(Array.from({ length: given.callers }, caller));
      return { jobs, seconds: (performance.now() - began) / 1000 };
    });
  },

  async fill() {
    return await withUtils(1, async (utils) => {
      const began = performance.now();
      for (let first = 0; first < given.jobs; first += 1000) {
        const length = Math.min(1000, given.jobs - first);
        await utils.addJobs(
          Array.from({ length }, (_, i) => ({ identifier: "noop", payload: { n: first + i } })),
        );
      }
      return { jobs: given.jobs, seconds: (performance.now() - began) / 1000 };
    });
  },

  async work() {
    let entered = 0;
    // A write is a system call here, so most counts are written a little late; the last one is not.
    const late = setInterval(() => write(2 * given.worker, BigInt(entered)), 5);
    late.unref();
    function noop(payload) {
      if (given.stamping) {
        write(FIRST_STAMP + 2 * payload.n + 1, process.hrtime.bigint());
        return;
      }
      if (entered === 0) {
        write(2 * given.worker + 1, process.hrtime.bigint());
      }
      entered++;
      if (entered === 1 || entered === given.jobs) write(2 * given.worker, BigInt(entered));
    }
    const runner = await run({
      taskList: { noop },
      preset: {
        worker: {
          connectionString,
          logger,
          concurrentJobs: 24,
          maxPoolSize: 25,
          localQueue: { size: 500 },
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
        },
      },
    });
    await runner.promise;
  },

  async ping() {
    await withUtils(1, async (utils) => {
      for (let n = 0; n < given.count; n++) {
        await sleep(20 + Math.random() * 100);
        write(FIRST_STAMP + 2 * n, process.hrtime.bigint());
        await utils.addJob("noop", { n });
        while (read(FIRST_STAMP + 2 * n + 1) === 0n) await sleep(2);
      }
    });
  },
};

console.log(JSON.stringify((await acts[what]()) ?? null));
