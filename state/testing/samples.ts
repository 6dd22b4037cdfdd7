/** Requests for samples, and workers that take them. */
import { SAMPLE_TASK } from '../../platform/testing/sample-task.js';
import type { SampleRequestInput, SampleRequests, SampleTaking, TakenSample } from '../samples/samples.js';

const LONG_MS = 600_000;

/** A request of project `p` for model `m`. */
export function testSample(
  id: string,
  {
    project = 'p',
    model = 'm',
    ...changes
  }: Partial<SampleRequestInput & { project: string; model: string }> = {},
): SampleRequestInput {
  const payload = { project, model, source: { model_id: model }, request: SAMPLE_TASK };
  return { id, caller: 'caller', pool: 'default', named: false, payload, wait_ms: LONG_MS, ...changes };
}

/** Takes requests for worker `w`, which answers no others. */
export function takeSamples(
  store: Pick<SampleRequests, 'takeSamples'>,
  changes: Partial<SampleTaking> = {},
): Promise<TakenSample[]> {
  const taking = {
    pool: 'default',
    worker: 'w',
    max_running: 256,
    answered: [],
    hold_ms: LONG_MS,
    limit: 256,
  };
  return store.takeSamples({ ...taking, ...changes });
}
