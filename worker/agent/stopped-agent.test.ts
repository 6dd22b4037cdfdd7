/** What becomes of the ranks of an agent that is stopped and does not end. */
import t from 'tap';
import { agentSilenceMs } from '../common/timing.js';
import { fakeStateDigest } from '../testing/fake-state.js';
import { Fleet, SHORT_SILENCES, TEST_TIMING } from '../testing/fleet.js';

const STEP_MS = 20;
/** In so many steps a rank without the word of its agent would have ended. */
const LONG = Math.ceil((1.5 * agentSilenceMs({ ...TEST_TIMING, ...SHORT_SILENCES })) / STEP_MS);
const STEPS = LONG + 50;

t.test('ranks outlast every silence of an agent that lives, and end while it is stopped', async (t) => {
  const f = await Fleet.start({ ranks: { step_ms: STEP_MS, slow: { from: LONG + 1, ms: 300 } } });
  t.teardown(() => f.close());
  const agent = await f.agentProcess(2, SHORT_SILENCES);
  const id = await f.submit({ steps: STEPS, every_steps: 10, ranks: 2, max_errors: 0 });
  await f.until(id, (job) => job.progress.step >= LONG);
  const before = (await f.events(id)).map(({ type }) => type);
  t.equal(before.filter((type) => type === 'training.started').length, 1, 'no rank was lost until now');

  agent.kill('SIGSTOP');
  await f.untilNoRanks();
  t.pass('no rank is left of an agent that is still stopped');

  agent.kill('SIGCONT');
  await f.hurry();
  const job = await f.untilState(id, 'succeeded');
  t.equal(
    job.export?.state_digest,
    fakeStateDigest(1, STEPS),
    'it goes on, and that was no error of the job',
  );
});
