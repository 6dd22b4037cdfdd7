import type { Dataset, Job, Model, Pool } from '../../../contracts/types.js';
import { compact, count } from '../parts/format.js';
import {
  baseOf,
  isUri,
  METHODS,
  methodOf,
  objectiveOf,
  objectivesOf,
  type Restore,
  valueAt,
  withBase,
  withCheckpoint,
  withMethod,
  withObjective,
  withValue,
} from './draft.js';
import { ADAPTER, EVALUATION, LENGTHS, PATHS, RANKS, ROLLOUTS, TRAINING } from './fields.js';
import { Choice, DefaultedChoice, NumberInput, OneOfInputs, TextInput, useForm } from './inputs.js';

interface ModelSectionProps {
  presets: readonly string[];
  models: readonly Model[];
  /** Runs whose newest checkpoint can be chosen. */
  runs: readonly Job[];
}

/** The choice after which a name is written. */
const HUB = 'hf://';

/** Step 2: what is trained. */
export function ModelSection({ presets, models, runs }: ModelSectionProps) {
  const { draft } = useForm();
  const uploaded = models
    .filter(({ model_type }) => model_type !== null)
    .map(({ id, name, num_parameters }) => ({
      value: id,
      label: `${name}, ${compact(num_parameters)} parameters`,
      group: 'Uploaded models',
    }));
  const fresh = presets.map((preset) => ({
    value: preset,
    label: `${preset}, random weights`,
    group: 'Random weights',
  }));
  const trained = runs.flatMap(({ name, id, latest_checkpoint }) =>
    latest_checkpoint === null
      ? []
      : [
          {
            value: latest_checkpoint.id,
            label: `${name || id}, step ${count(latest_checkpoint.step)}`,
            group: 'My runs',
          },
        ],
  );
  const base = baseOf(draft.value);
  const hub = { value: isUri(base) ? base : HUB, label: 'a model by its name on the Hugging Face Hub …' };
  const choose = (chosen: string) => {
    const run = runs.find(({ latest_checkpoint }) => latest_checkpoint?.id === chosen);
    draft.value = run ? withCheckpoint(draft.value, run, chosen, 'weights') : withBase(draft.value, chosen);
  };
  return (
    <section class="card part" aria-labelledby="new-model">
      <h2 id="new-model">Model</h2>
      <div class="fields">
        <Choice
          path={PATHS.model}
          label="Begin with"
          options={[...uploaded, ...trained, ...fresh, hub]}
          value={base}
          choose={choose}
        />
        {isUri(base) && typeof valueAt(draft.value, PATHS.initFrom) === 'string' && (
          <TextInput path={PATHS.initFrom} label="Name" placeholder="hf://owner/name" />
        )}
        {base.startsWith('ckpt_') && (
          <Choice
            path={PATHS.restore}
            label="Of the checkpoint"
            options={RESTORES}
            value={String(valueAt(draft.value, PATHS.restore) ?? '')}
            choose={(restore) => {
              draft.value = withValue(draft.value, PATHS.restore, restore);
            }}
          />
        )}
      </div>
    </section>
  );
}

const RESTORES: readonly { value: Restore; label: string }[] = [
  { value: 'continue', label: 'continue its training' },
  { value: 'weights', label: 'fine-tune its weights' },
];

const METHOD_LABELS: Readonly<Record<(typeof METHODS)[number], string>> = {
  full: 'all weights',
  lora: 'adapters (LoRA)',
  dora: 'adapters (DoRA)',
};

/** Names of objectives that have one beside that of the document. */
const OBJECTIVE_LABELS: Readonly<Record<string, string>> = {
  sft: 'next token',
  grpo: 'reinforcement by a grader',
};

/** Step 3: how it is trained. */
export function TrainingSection({ dataset }: { dataset: Dataset | undefined }) {
  const { draft } = useForm();
  const method = methodOf(draft.value);
  const objectives = dataset === undefined ? ['sft'] : objectivesOf(dataset);
  const objective = objectiveOf(draft.value);
  return (
    <section class="card part" aria-labelledby="new-training">
      <h2 id="new-training">Training</h2>
      <div class="fields">
        <Choice
          path={PATHS.adapter}
          label="Train"
          options={METHODS.map((value) => ({ value, label: METHOD_LABELS[value] }))}
          value={method}
          choose={(chosen) => {
            draft.value = withMethod(draft.value, METHODS.find((one) => one === chosen) ?? 'full');
          }}
        />
        {method !== 'full' && ADAPTER.map((field) => <NumberInput key={field.label} {...field} />)}
        <Choice
          path={PATHS.objective}
          label="Objective"
          options={objectives.map((value) => ({ value, label: OBJECTIVE_LABELS[value] ?? value }))}
          value={objective}
          choose={(type) => {
            draft.value = withObjective(draft.value, type);
          }}
        />
        {OBJECTIVE_LABELS[objective] === undefined && <NumberInput path={PATHS.beta} label="Beta" />}
        {objective === 'grpo' && ROLLOUTS.map((field) => <NumberInput key={field.label} {...field} />)}
        <OneOfInputs label="Length in" parent={['train']} fields={LENGTHS} Input={NumberInput} />
        {TRAINING.map((field) => (
          <NumberInput key={field.label} {...field} />
        ))}
        {isEvaluated(draft.value) && EVALUATION.map((field) => <NumberInput key={field.label} {...field} />)}
        <DefaultedChoice path={PATHS.precision} label="Precision" values={['bf16', 'fp16', 'fp32']} />
      </div>
    </section>
  );
}

const isEvaluated = (draft: object) =>
  Boolean(valueAt(draft, ['data', 'validation_fraction']) ?? valueAt(draft, ['train', 'evaluation']));

/** Step 5: where it runs. */
export function PlacementSection({ pools }: { pools: readonly Pool[] }) {
  return (
    <section class="card part" aria-labelledby="new-placement">
      <h2 id="new-placement">Workers</h2>
      <div class="fields">
        <DefaultedChoice path={PATHS.pool} label="Pool" values={pools.map(({ name }) => name)} />
        {RANKS.map((field) => (
          <NumberInput key={field.label} {...field} />
        ))}
      </div>
      <p class="small muted">The result has the same bits on any number of ranks.</p>
    </section>
  );
}
