/** `train.adapter` over HTTP: the estimate of a dry run, and each wrong field by its pointer. */
import t from 'tap';
import type { DryRun, Problem } from '../../../contracts/index.js';
import { smallSpec, startTestStack } from '../../testing/stack.js';

const stack = await startTestStack();
t.teardown(() => stack.close());
const dataset = await stack.upload('some text to train on, long enough for a sequence. '.repeat(10));

const dryRun = (changes: object) => {
  const spec = smallSpec(dataset.id);
  const payload = {
    ...spec,
    ...changes,
    train: { ...spec.train, ...('train' in changes ? (changes.train as object) : {}) },
  };
  return stack.request({ method: 'POST', url: '/v1/jobs?dry_run=true', payload });
};

t.test('adapters need less memory, and the document has their modules', async (t) => {
  const whole = (await dryRun({})).json<DryRun>();
  const adapted = (await dryRun({ train: { adapter: { rank: 4 } } })).json<DryRun>();
  const [all, some] = [whole, adapted].map(({ estimate }) => estimate.data[0]?.bytes);
  t.ok((some?.moments ?? 0) < 0.1 * (all?.moments ?? 0));
  t.ok((some?.total ?? 0) < 0.9 * (all?.total ?? 0));
  t.match(adapted.spec.train.adapter, { rank: 4, alpha: 8 });
  t.ok(adapted.spec.train.adapter?.target_modules.includes('q_proj'));
});

t.test('each wrong field is refused by its pointer', async (t) => {
  const refused: [changes: object, pointer: string, code: string][] = [
    [{ train: { adapter: { rank: 0 } } }, '/train/adapter/rank', 'out_of_range'],
    [{ train: { adapter: { rank: 513 } } }, '/train/adapter/rank', 'out_of_range'],
    [{ train: { adapter: { alpha: 0 } } }, '/train/adapter/alpha', 'out_of_range'],
    [{ train: { adapter: { dropout: 1 } } }, '/train/adapter/dropout', 'out_of_range'],
    [
      { train: { adapter: { type: 'dora', dropout: 0.1 } } },
      '/train/adapter/dropout',
      'adapter_dropout_with_dora',
    ],
    [{ train: { adapter: { type: 'ia3' } } }, '/train/adapter/type', 'unknown_value'],
    [{ train: { adapter: { init: 'pissa' } } }, '/train/adapter/init', 'unknown_value'],
    [{ train: { adapter: { r: 8 } } }, '/train/adapter/r', 'unknown_field'],
    [{ train: { adapter: { target_modules: 5 } } }, '/train/adapter/target_modules', 'wrong_type'],
    [{ train: { adapter: { target_modules: 'all' } } }, '/train/adapter/target_modules', 'wrong_format'],
    [{ train: { adapter: { target_modules: [] } } }, '/train/adapter/target_modules', 'wrong_length'],
    [
      { train: { adapter: { target_modules: ['q'] } } },
      '/train/adapter/target_modules/0',
      'adapter_module_unknown',
    ],
    [{ train: { adapter: { modules_to_save: ['*'] } } }, '/train/adapter/modules_to_save/0', 'wrong_format'],
    [{ export: { format: 'peft' } }, '/export/format', 'adapter_missing'],
  ];
  for (const [changes, pointer, code] of refused) {
    const reply = await dryRun(changes);
    t.equal(reply.statusCode, 422, reply.body);
    t.match(reply.json<Problem>().errors, [{ pointer, code }], JSON.stringify(changes));
  }
});
