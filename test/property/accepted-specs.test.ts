/**
 * A rank starts with every document that the API accepts: every rule of the native core is also a rule of the job
 * document.
 */
import fc, { type Arbitrary } from 'fast-check';
import t from 'tap';
import { loadContract } from '../../api/operations.js';
import { DEFAULTS } from '../../contracts/generated/job-defaults.js';
import type { JobSpec, ModelConfig } from '../../contracts/index.js';
import { TINY_CONFIG } from '../../formats/testing/models.js';
import { resolveSpec } from '../../job-document/index.js';
import { Trainer } from '../../native/js/index.js';
import { tinyTokens } from '../../native/js/testing.js';
import { trainerConfig } from '../../worker/rank/trainer-config.js';
import { startMessage } from '../../worker/testing/start-message.js';
import type { ApiDocument } from './requests.js';
import { type Schema, Values } from './values.js';

const LENGTH = 17;
const CASES = 3000;
const tokens = tinyTokens(LENGTH);
t.teardown(() => tokens.remove());

const contract = loadContract();
const document = contract.document as unknown as ApiDocument;
const values = new Values(document);

/**
 * An object of a schema with its `type`, if it has one, and at most three other fields: more are rarely valid together.
 */
function someOf(name: string, fields?: readonly string[]): Arbitrary<Record<string, unknown>> {
  const schema = document.components.schemas[name] as Schema;
  const chosen = fields ?? Object.keys(schema.properties ?? {});
  const some = fc.subarray([...chosen], { maxLength: 3 });
  return fc
    .tuple(values.forSchema(schema) as Arbitrary<Record<string, unknown>>, some)
    .map(([object, names]) =>
      Object.fromEntries(
        Object.entries(object).filter(([field]) => field === 'type' || names.includes(field)),
      ),
    );
}

const sections: Arbitrary<Partial<JobSpec>> = fc.oneof(
  someOf('OptimizerSpec').map((optimizer) => ({ train: { steps: 100, optimizer } })),
  someOf('LrScheduleSpec').map((lrSchedule) => ({ train: { steps: 100, lr_schedule: lrSchedule } })),
  someOf('LossScaleSpec').map((lossScale) => ({
    train: { steps: 100, precision: 'fp16', loss_scale: lossScale },
  })),
  someOf('ZeroSpec').map((zero) => ({ zero })),
  fc
    .tuple(someOf('TrainSpec', Object.keys(DEFAULTS.TrainSpec)), someOf('ZeroSpec'))
    .map(([train, zero]) => ({ train: { steps: 100, ...train }, zero })),
) as Arbitrary<Partial<JobSpec>>;

function documentOf({ train, zero }: Partial<JobSpec>): JobSpec {
  return {
    model: {
      config: TINY_CONFIG as ModelConfig,
    },
    data: { dataset: 'ds_01J00000000000000000000000' },
    train: { steps: 100, ...train, sequence_length: LENGTH, global_batch_size: 14, micro_batch_size: 2 },
    ...(zero && { zero }),
  } as JobSpec;
}

t.test('a rank starts with every document that the API accepts', async (t) => {
  let accepted = 0;
  fc.assert(
    fc.property(sections, (given) => {
      const body = documentOf(given);
      if (contract.jobSpecErrors(body).length > 0) return;
      const { spec, errors } = resolveSpec(body, null);
      if (errors.length > 0) return;
      accepted += 1;
      Trainer.create(
        trainerConfig(
          startMessage({ spec, training_files: [{ path: tokens.path, weight: 1, useful_share: 1 }] }),
        ),
        () => {},
      ).close();
    }),
    { numRuns: CASES, seed: Number(process.env.PROPERTY_SEED ?? 7) },
  );
  t.ok(accepted > CASES / 10, `${accepted} of ${CASES} documents were accepted`);
});
