/** Tests of the ranks of an agent that is stopped without ending. */
import t from 'tap';
import { agentSilenceMs } from '../shared/timing.js';
import { fakeStateDigest } from '../testing/fake-state.js';
import { Fleet, SHORT_SILENCES, TEST_TIMING } from '../testing/fleet.js';

const STEP_MS = 20;
/** More steps than a rank runs without a message of its agent. */
const LONG = Math.ceil((1.5 * agentSilenceMs({ ...TEST_TIMING, ...SHORT_SILENCES })) / STEP_MS);
const STEPS = LONG + 50;

t.test('ranks outlast every pause of a live agent, and end while it is stopped', async (t) => {
  const f = await Fleet.start({ ranks: { step_ms: STEP_MS, slow: { from: LONG + 1, ms: 300 } } });
  t.teardown(() => f.close());
  const agent = await f.agentProcess(2, SHORT_SILENCES);
  const id = await f.submit({ steps: STEPS, every_steps: 10, ranks: 2 });
  await f.until(id, (job) => job.progress.step >= LONG);
  const before = (await f.events(id)).map(({ type }) => type);
  t.equal(before.filter((type) => type === 'training.started').length, 1, 'no rank was lost before the stop');

  agent.kill('SIGSTOP');
  await f.untilNoRanks();
  t.pass('all ranks ended while their agent is stopped');

  agent.kill('SIGCONT');
  await f.speedUp();
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, STEPS));
  const end = job.state_history.find(({ state, at }) => state === 'queued' && at > job.created_at);
  t.equal(end?.reason, 'heartbeat_lost', 'its end was no error of the job');
});
