import t from 'tap';
import type { JobSpec } from '../../../contracts/index.js';
import { resolveSpec } from '../../resolve-spec.js';

const SESSION = { model: { preset: 'llama-tiny' }, data: {}, train: { session: {} } } satisfies JobSpec;

function brokenBy(changes: Partial<JobSpec>): string[] {
  const { errors } = resolveSpec({ ...SESSION, ...changes }, null);
  return errors.map(({ pointer, code }) => `${pointer} ${code}`);
}

t.test('a session has neither data nor steps', async (t) => {
  const { spec, errors } = resolveSpec(SESSION, null);
  t.same(errors, []);
  t.same(spec.train.session, { idle_seconds: 900 });
  t.equal(spec.train.steps, undefined);
  t.equal(spec.train.lr_schedule.type, 'constant', 'the rates are those of the calls');
  t.notOk('dataset' in spec.data || 'mixture' in spec.data);
  const template = '{{ messages }}';
  const chat = resolveSpec({ ...SESSION, data: { chat_template: template } }, null);
  t.same([chat.errors, chat.spec.data.chat_template], [[], template], 'for answers of its checkpoints');
});

t.test('fields of data and steps are refused by name', async (t) => {
  const dataset = 'ds_01KAJX8W3Q5R7T9V1X3Z5B7D9F';
  t.same(brokenBy({ data: { dataset, packing: 'whole' } }), [
    '/data/dataset field_without_effect',
    '/data/packing field_without_effect',
  ]);
  t.same(brokenBy({ train: { session: {}, steps: 5, lr_schedule: {} } }), [
    '/train/steps field_without_effect',
    '/train/lr_schedule field_without_effect',
  ]);
  t.same(brokenBy({ deepspeed_config: {} }), ['/deepspeed_config field_without_effect']);
});

t.test('the resolved document of a session makes the same session', async (t) => {
  const { spec } = resolveSpec(SESSION, null);
  const { data, train } = spec;
  const again = resolveSpec({ ...SESSION, data, train } as JobSpec, null);
  t.same(again.errors, []);
  t.same(again.spec, spec);
});

t.test('values that calls do not support are refused', async (t) => {
  t.same(brokenBy({ train: { session: {}, optimizer: { type: 'sgd' } } }), [
    '/train/optimizer/type session_unsupported',
  ]);
  t.same(brokenBy({ train: { session: {}, precision: 'fp16' } }), ['/train/precision session_unsupported']);
  t.same(brokenBy({ zero: { stage: 1 } }), ['/zero/stage session_unsupported']);
  t.same(brokenBy({ train: { session: {}, adapter: { dropout: 0.1 } } }), [
    '/train/adapter/dropout session_unsupported',
  ]);
  const groups = [{ match: '*norm.weight', lr: 0.1 }];
  t.same(brokenBy({ train: { session: {}, optimizer: { param_groups: groups } } }), [
    '/train/optimizer/param_groups/0/lr session_unsupported',
  ]);
});
