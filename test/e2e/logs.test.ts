/**
 * Log lines of real ranks of two agents, read over HTTP: during training, after a kill of one rank, and after the end.
 */
import t from 'tap';
import type { JobLog } from '../../contracts/index.js';
import { Cluster } from '../support/cluster.js';
import { largerSteps, smallJob } from '../support/specs.js';
import { sampleText } from '../support/stack.js';

/** Most of them come after the first checkpoint, so that the kill hits a running job on a loaded machine, too. */
const STEPS = 120;

t.test('the log of a job on two agents', async (t) => {
  const cluster = await Cluster.start(t);
  await cluster.agent({ slots: 1 });
  await cluster.agent({ slots: 1 });
  const { jobs, datasets } = cluster.client;
  const dataset = (await datasets.create('openapi', sampleText())).id;
  const spec = largerSteps(
    smallJob({ name: 'logged', dataset, steps: STEPS, ranks: 2, every_steps: 10 }),
    20,
  );
  const { id } = await jobs.create(spec);

  const followed: JobLog[] = [];
  const following = (async () => {
    for await (const line of jobs.followLogs(id)) followed.push(line);
  })();
  await cluster.untilRanks(id, 2);
  const placements = (await cluster.placements(id))[0] ?? [];
  t.same(
    placements.map(({ slots }) => slots),
    [1, 1],
    'one rank at each agent',
  );
  await jobs.until(id, ({ latest_checkpoint }) => latest_checkpoint !== null, { interval_ms: 20 });
  const [, killed] = cluster.ranks();
  if (killed) process.kill(killed.pid, 'SIGKILL');
  const job = await jobs.until(id, () => false);
  t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
  await following;

  const lines: JobLog[] = [];
  for await (const line of jobs.logs(id)) lines.push(line);
  t.same(followed, lines, 'the stream and the list are equal');
  const seqs = lines.map(({ seq }) => seq);
  t.same(
    seqs,
    [...new Set(seqs)].sort((a, b) => a - b),
  );
  const said = (rank: number | null, pattern: RegExp) =>
    lines.filter((line) => line.rank === rank && pattern.test(line.message)).length;
  for (const rank of [0, 1]) {
    t.equal(said(rank, /^started on \S+, process \d+$/), 2, `starts of rank ${rank}`);
    t.equal(said(rank, /^connected kernels=cpu-/), 2);
    t.equal(said(rank, /^loaded from=checkpoint directory=\S+ restore=full$/), 1);
    t.ok(said(rank, /^shard stored step=10 bytes=\d+ /) >= 1);
    t.equal(said(rank, new RegExp(`^exited with code 0 after step ${STEPS}$`)), 1);
  }
  t.equal(said(0, new RegExp(`^step 1 of ${STEPS} loss=5\\.\\d+ .* tokens_per_second=\\d+ `)), 1);
  t.equal(said(0, new RegExp(`^step ${STEPS} of ${STEPS} `)), 1);
  t.equal(said(0, /^model parameters=\d+ trained=\d+ tensors=\d+$/), 2);
  t.equal(said(0, /^killed by SIGKILL/) + said(1, /^killed by SIGKILL/), 1);
  t.equal(said(null, /^retries in \d+ ms; error 1 of \d+ allowed$/), 1);
  t.equal(said(null, /^exported .*model\.safetensors.* to jobs\//), 1);
  t.match(lines.at(-1)?.message, /^exported/);
});
