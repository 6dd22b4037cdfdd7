import { useRef } from 'preact/hooks';
import { valueAt, withValue } from './draft.js';
import { PATHS } from './fields.js';
import { CheckInput, Choice, DefaultedChoice, OneOfInputs, TextInput, useForm } from './inputs.js';
import { MAX_INTEGRATIONS, TRACKERS, trackerOf, withType } from './trackers.js';

/** Step 6: the model folder that is written at the end. */
export function ExportSection() {
  return (
    <section class="card part" aria-labelledby="new-export">
      <h2 id="new-export">Export</h2>
      <div class="fields">
        <DefaultedChoice path={PATHS.format} label="Format" values={['safetensors', 'peft']} />
        <DefaultedChoice path={PATHS.dtype} label="Dtype" values={['bf16', 'fp16', 'fp32']} />
      </div>
      <CheckInput path={PATHS.tensorboard} label="With a file of the metrics for TensorBoard" />
    </section>
  );
}

const [FIRST_TYPE] = Object.keys(TRACKERS);

/** Step 7: trackers that receive the metrics. */
export function IntegrationsSection() {
  const { draft } = useForm();
  const given = valueAt(draft.value, PATHS.integrations);
  const integrations = Array.isArray(given) ? given : [];
  const title = useRef<HTMLHeadingElement>(null);
  const set = (index: number, value: unknown) => {
    draft.value = withValue({ ...draft.value, integrations }, itemOf(index), value);
  };
  return (
    <section class="card part" aria-labelledby="new-integrations">
      <h2 id="new-integrations" tabIndex={-1} ref={title}>
        Experiment trackers
      </h2>
      {integrations.length === 0 && (
        <p class="small muted">A tracker, such as MLflow, can receive the metrics while the run goes on.</p>
      )}
      {integrations.map((integration, index) => (
        <IntegrationFields
          key={index}
          index={index}
          type={String(integration?.type ?? '')}
          onType={(type) => set(index, withType(integration, type))}
          onRemove={() => {
            set(index, undefined);
            // The focus would be lost with the button.
            title.current?.focus();
          }}
        />
      ))}
      {integrations.length < MAX_INTEGRATIONS && (
        <div class="filters">
          <button type="button" onClick={() => set(integrations.length, { type: FIRST_TYPE })}>
            Add a tracker
          </button>
        </div>
      )}
    </section>
  );
}

const itemOf = (index: number, ...rest: string[]) => [...PATHS.integrations, String(index), ...rest];

interface IntegrationProps {
  index: number;
  type: string;
  onType: (type: string) => void;
  onRemove: () => void;
}

function IntegrationFields({ index, type, onType, onRemove }: IntegrationProps) {
  const { targets = [], fields = [] } = trackerOf(type) ?? {};
  return (
    <fieldset class="part tracker">
      <legend class="small muted">Tracker {index + 1}</legend>
      <div class="fields">
        <Choice
          path={itemOf(index, 'type')}
          label="Kind"
          options={Object.entries(TRACKERS).map(([value, { label }]) => ({ value, label }))}
          value={type}
          choose={onType}
        />
        <OneOfInputs
          key={type}
          label="Reached by"
          path={itemOf(index)}
          parent={itemOf(index)}
          fields={targets}
          Input={TextInput}
        />
        {fields.map(({ name, ...field }) => (
          <TextInput key={name} path={itemOf(index, name)} {...field} />
        ))}
      </div>
      <div class="filters">
        <button type="button" onClick={onRemove}>
          Remove
        </button>
      </div>
    </fieldset>
  );
}
