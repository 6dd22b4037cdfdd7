import t from 'tap';
import { fillResolved, renderDefaults } from './job-defaults.mjs';

const ref = (name) => ({ $ref: `#/components/schemas/${name}` });
const contract = () => ({
  components: {
    schemas: {
      JobSpec: { type: 'object', properties: { train: ref('TrainSpec') } },
      TrainSpec: {
        type: 'object',
        required: ['steps'],
        properties: {
          steps: { type: 'integer' },
          size: { type: ['integer', 'string'], default: 16 },
          seed: { allOf: [ref('Seed')], default: 1 },
          clips: ref('Flag'),
          optimizer: ref('OptimizerSpec'),
        },
      },
      OptimizerSpec: {
        type: 'object',
        properties: {
          type: { type: 'string', enum: ['adam', 'sgd', 'plain'], default: 'adam' },
          eps: { type: 'number', 'x-defaults': { adam: 1e-8 } },
          decay: { type: 'number', 'x-defaults': { adam: 0.1, sgd: 0 } },
        },
      },
      Seed: { type: 'integer' },
      Flag: { type: 'boolean', default: false },
      Call: { oneOf: [ref('SampleCall')] },
      SampleCall: { type: 'object', properties: { n: { type: 'integer', default: 1 } } },
      Other: { type: 'object', properties: { name: { type: 'string', default: 'x' } } },
      ResolvedTrain: {
        'x-filled': true,
        allOf: [ref('TrainSpec'), { type: 'object', properties: { size: { type: 'integer' } } }],
        required: ['optimizer'],
      },
      ResolvedJob: {
        type: 'object',
        properties: { name: { type: 'string', default: 'job' }, train: ref('ResolvedTrain') },
        examples: [{ train: { steps: 3, seed: 2, optimizer: {} } }],
      },
    },
  },
});

t.test('a resolved schema requires the fields with a default, and its examples have them', async (t) => {
  const { schemas } = fillResolved(contract()).components;
  t.same(schemas.ResolvedTrain.required, ['steps', 'size', 'seed', 'clips', 'optimizer']);
  t.same(schemas.ResolvedJob.examples, [
    { train: { size: 16, seed: 2, clips: false, steps: 3, optimizer: {} } },
  ]);
  t.notOk('required' in schemas.ResolvedJob, 'it is not marked');
  t.notMatch(JSON.stringify(schemas), 'x-', 'the contract has no annotations');
});

t.test('the defaults of the sections of a job document, and of calls', async (t) => {
  const text = renderDefaults(contract());
  const value = (section) => JSON.parse(new RegExp(`  ${section}: (.*) satisfies Partial`).exec(text)[1]);
  t.same(value('TrainSpec'), { size: 16, seed: 1, clips: false });
  t.same(value('OptimizerSpec'), { type: 'adam' });
  const [, types] = /OptimizerSpec: (.*) satisfies Record/.exec(text);
  t.same(JSON.parse(types), { adam: { eps: 1e-8, decay: 0.1 }, sgd: { decay: 0 }, plain: {} });
  t.same(value('SampleCall'), { n: 1 });
  t.notMatch(text, 'Other', 'it is part of neither');
});
