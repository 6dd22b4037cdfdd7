/** Reinforcement learning over HTTP, without workers. */

import t from 'tap';
import type { DryRun, Job, Problem, Rollout } from '../../../contracts/index.js';
import { rewardsKey } from '../../../formats/checkpoint/layout.js';
import { EXACT } from '../../../job-document/testing/documents.js';
import { getIfExists } from '../../../platform/object-store/common/get-if-exists.js';
import { smallSpec, startTestStack } from '../../testing/stack.js';

const stack = await startTestStack();
t.teardown(() => stack.close());

const LINES = Array.from({ length: 8 }, (_, i) => JSON.stringify({ prompt: `${i}=`, answer: String(i) }));
const { id: dataset, num_prompts } = await stack.upload(LINES.join('\n'), 'jsonl');

function specWith(grader: object) {
  const objective = { type: 'grpo', grader, prompts_per_step: 4, group_size: 2, max_tokens: 8 };
  return { ...smallSpec(dataset), train: { steps: 6, objective } };
}

const post = (payload: object, query = '') =>
  stack.request({ method: 'POST', url: `/v1/jobs${query}`, payload });
const rolloutOf = (id: string, query = '') =>
  stack.request({ method: 'GET', url: `/v1/jobs/${id}/rollout${query}` });

t.test('a dry run counts prompts and samples', async (t) => {
  t.equal(num_prompts, 8);
  const reply = await post(specWith(EXACT), '?dry_run=true');
  t.match(reply.json<DryRun>().work, {
    sequences: 48,
    tokens: null,
    sequences_per_epoch: 16,
    epochs: 3,
    duration: null,
  });
});

t.test('errors of a grader name its field', async (t) => {
  const refused = async (grader: object) => (await post(specWith(grader))).json<Problem>().errors;
  t.match(await refused({ ...EXACT, reference: '{{items.answer}}' }), [
    { pointer: '/train/objective/grader/reference', code: 'grader_invalid' },
  ]);
  t.match(await refused({ ...EXACT, operation: 'same' }), [
    { pointer: '/train/objective/grader/operation', code: 'unknown_value' },
  ]);
  const model = { type: 'score_model', name: 'judge', model: 'm', input: [{ role: 'user', content: 'a' }] };
  t.match(await refused(model), [{ pointer: '/train/objective/grader/server', code: 'missing_field' }]);
});

t.test('the samples of a step, by default of the newest one with rewards', async (t) => {
  const { id } = (await post(specWith(EXACT))).json<Job>();
  t.match((await rolloutOf(id)).json(), { code: 'rollout_not_found' });
  const rollout = (step: number, call: number): Rollout => ({ step, call, groups: [] });
  for (const [step, call] of [
    [1, 1],
    [2, 4],
  ] as const)
    await stack.objects.put(rewardsKey(id, call), Buffer.from(JSON.stringify(rollout(step, call))));
  await stack.store.countCalls(id, { appended: 7, answered: 7, is_finished: false, bytes: 0 });
  t.same((await rolloutOf(id)).json(), rollout(2, 4), 'the third has no rewards yet');
  t.same((await rolloutOf(id, '?step=1')).json(), rollout(1, 1));
  t.match((await rolloutOf(id, '?step=3')).json(), { status: 404, code: 'rollout_not_found' });
  const put = { method: 'PUT', url: `/v1/jobs/${id}/calls/8`, payload: { type: 'save_state' } } as const;
  t.match((await stack.request(put)).json(), { status: 409, code: 'calls_read_only' });
  await stack.request({ method: 'POST', url: `/v1/jobs/${id}/cancel` });
  t.equal((await stack.request({ method: 'DELETE', url: `/v1/jobs/${id}` })).statusCode, 204);
  t.equal(await getIfExists(stack.objects, rewardsKey(id, 1)), null, 'they are removed with the job');
});
