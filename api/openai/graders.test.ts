/** Graders through the official client. */

import OpenAI from 'openai';
import t, { type Test } from 'tap';
import { EXACT } from '../../job-document/testing/documents.js';
import { ADMIN_KEY, startTestStack } from '../testing/stack.js';

type Run = Parameters<OpenAI['fineTuning']['alpha']['graders']['run']>[0];

const stack = await startTestStack();
t.teardown(() => stack.close());
const baseURL = `${await stack.listen()}/openai/v1`;
const { graders } = new OpenAI({ baseURL, apiKey: ADMIN_KEY, maxRetries: 0 }).fineTuning.alpha;

const python = (source: string) => ({ type: 'python' as const, name: 'code', source });
const NO_ERRORS = {
  formula_parse_error: false,
  invalid_variable_error: false,
  model_grader_parse_error: false,
  model_grader_refusal_error: false,
  model_grader_server_error: false,
  model_grader_server_error_details: null,
  other_error: false,
  python_grader_runtime_error: false,
  python_grader_runtime_error_details: null,
  python_grader_server_error: false,
  python_grader_server_error_type: null,
  sample_parse_error: false,
  truncated_observation_error: false,
  unresponsive_reward_error: false,
};

/** Checks that a call is refused with an error of the official client. */
async function refused(t: Test, call: Promise<unknown>, wanted: object, name = '') {
  const error = await call.then(
    () => null,
    (cause: unknown) => cause,
  );
  t.match(error, wanted, name);
}

t.test('a grade', async (t) => {
  const run = await graders.run({ grader: EXACT, model_sample: '4', item: { answer: '4' } });
  const { execution_time, ...metadata } = run.metadata;
  t.ok(execution_time >= 0);
  t.same(
    { ...run, metadata },
    {
      reward: 1,
      sub_rewards: {},
      metadata: {
        name: 'exact',
        type: 'string_check',
        scores: { exact: 1 },
        errors: NO_ERRORS,
        sampled_model_name: null,
        token_usage: null,
      },
      model_grader_token_usage_per_model: {},
    },
  );
});

t.test('several graders, of which some fail', async (t) => {
  const parts = {
    exact: EXACT,
    near: { ...EXACT, type: 'text_similarity', evaluation_metric: 'fuzzy_match', operation: undefined },
    code: python('def grade(sample, item):\n  return item["missing"]'),
    judge: {
      type: 'score_model',
      name: 'judge',
      model: 'ckpt_unknown',
      input: [{ role: 'user', content: 'x' }],
    },
    hook: { type: 'webhook', name: 'hook', webhook: `wh_${'0'.repeat(26)}` },
  };
  const grader = {
    type: 'multi',
    name: 'all',
    graders: parts,
    calculate_output: 'exact + near + code + judge + hook',
  };
  // The client's type has one grader, and the guide an object of them by name.
  const run = await graders.run({ grader, model_sample: 'ab', item: { answer: 'abcd' } } as unknown as Run);
  t.equal(run.reward, 2 / 3);
  t.same(run.sub_rewards, { exact: 0, near: 2 / 3, code: 0, judge: 0, hook: 0 });
  t.match(run.metadata.errors, {
    ...NO_ERRORS,
    python_grader_runtime_error: true,
    python_grader_runtime_error_details: /line 2: KeyError: 'missing'/,
    model_grader_server_error: true,
    model_grader_server_error_details: /ckpt_unknown/,
    unresponsive_reward_error: true,
  });
});

t.test('a valid grader is returned', async (t) => {
  for (const grader of [EXACT, python('def grade(sample, item):\n  return 1')])
    t.same(await graders.validate({ grader }), { grader });
});

t.test('graders that are refused', async (t) => {
  const refusals: [grader: object, message: RegExp][] = [
    [{ ...EXACT, type: 'other' }, /must be one of string_check, text_similarity/],
    [{ ...EXACT, reference: undefined }, /reference is required/],
    [{ ...EXACT, operation: 'is' }, /must be one of eq, ne, like, ilike/],
    [{ ...EXACT, reference: '{{answer}}' }, /\{\{answer\}\} is no variable/],
    [{ ...EXACT, type: 'text_similarity', operation: undefined, evaluation_metric: 'cosine' }, /fuzzy_match/],
    [{ ...python('x'), image_tag: '2025-05-08' }, /image_tag is not a known field/],
    [python('def grade(sample, item)'), /line 1: expected ':'/],
    [{ type: 'multi', name: 'm', graders: { a: EXACT }, calculate_output: 'b' }, /no grader is named b/],
    [{ type: 'multi', name: 'm', graders: { a: {} }, calculate_output: 'a' }, /type is required/],
    [{ type: 'label_model', name: 'l' }, /must be one of/],
  ];
  for (const [grader, message] of refusals)
    for (const call of [
      () => graders.validate({ grader } as Run),
      () => graders.run({ grader, model_sample: 'a' } as unknown as Run),
    ])
      await refused(
        t,
        call(),
        { status: 400, code: 'validation_failed', param: 'grader', message },
        String(message),
      );
  await refused(t, graders.run({ grader: EXACT } as Run), { status: 400, param: 'model_sample' });
  await refused(t, graders.run({ grader: EXACT, model_sample: 'a', item: [] } as Run), {
    status: 400,
    param: 'item',
  });
});

t.test('a key that may only read can check graders, and not run them', async (t) => {
  const { authorization } = await stack.headersOf('jobs:read');
  const reader = new OpenAI({ baseURL, apiKey: authorization.replace('Bearer ', ''), maxRetries: 0 });
  const { graders: own } = reader.fineTuning.alpha;
  t.same(await own.validate({ grader: EXACT }), { grader: EXACT });
  await refused(t, own.run({ grader: EXACT, model_sample: 'a' }), {
    status: 403,
    code: 'insufficient_scope',
  });
});
