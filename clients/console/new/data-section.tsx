import type { DataPreview, Dataset } from '../../../contracts/types.js';
import { may } from '../app/session.js';
import { Drop } from '../data/drop.js';
import { type Report, uploadDataset } from '../data/upload.js';
import { bytes, count, portion } from '../parts/format.js';
import { Labelled } from '../parts/labelled.js';
import { Notice } from '../parts/notice.js';
import { valueAt, withDataset, withValue } from './draft.js';
import { PATHS, VALIDATION } from './fields.js';
import { Choice, NumberInput, useForm } from './inputs.js';

interface DataSectionProps {
  datasets: readonly Dataset[];
  onUpload: (dataset: Dataset) => void;
}

/** Step 1: the data, and what was read of them. */
export function DataSection({ datasets, onUpload }: DataSectionProps) {
  const { draft, plan } = useForm();
  const choose = (dataset: Dataset) => {
    draft.value = withDataset(draft.value, dataset);
  };
  const send = async ([file]: readonly File[], report: Report, signal: AbortSignal) => {
    if (file === undefined) return;
    const dataset = await uploadDataset(file, report, signal);
    onUpload(dataset);
    choose(dataset);
  };
  const id = String(valueAt(draft.value, PATHS.dataset) ?? '');
  const dataset = datasets.find((one) => one.id === id);
  const mixture = valueAt(draft.value, ['data', 'mixture']);
  return (
    <section class="card part" aria-labelledby="new-data">
      <h2 id="new-data">Data</h2>
      {may('datasets') && (
        <Drop
          label="Upload data"
          hint="Drop a file here: text, .jsonl, or .tokens and .bin for token files."
          send={send}
        />
      )}
      <div class="fields">
        <Choice
          path={PATHS.dataset}
          label="Dataset"
          options={datasets.map((one) => ({ value: one.id, label: `${one.name} (${bytes(one.bytes)})` }))}
          value={id}
          choose={(chosen) => {
            const found = datasets.find((one) => one.id === chosen);
            if (found) choose(found);
          }}
        />
        {VALIDATION.map((field) => (
          <NumberInput key={field.label} {...field} />
        ))}
      </div>
      {dataset && <p class="small muted">{countsOf(dataset)}</p>}
      {Array.isArray(mixture) && (
        <p class="small muted">{`A mixture of ${mixture.length} datasets. A chosen dataset replaces it.`}</p>
      )}
      {dataset !== undefined && dataset.num_chats > 0 && <Template />}
      {plan.previewFault.value && <Notice fault={plan.previewFault.value} />}
      {plan.preview.value && (
        <Preview preview={plan.preview.value} isPacked={plan.resolved.value?.data.packing !== 'split'} />
      )}
    </section>
  );
}

/** A template that many models know (ChatML), for tokenizers that have none. */
const CHATML =
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

function Template() {
  const { draft } = useForm();
  const value = valueAt(draft.value, PATHS.template);
  const set = (template: string) => {
    draft.value = withValue(draft.value, PATHS.template, template === '' ? undefined : template);
  };
  return (
    <>
      <Labelled label="Chat template (Jinja)" path={PATHS.template}>
        {(attributes) => (
          <textarea
            {...attributes}
            class="mono"
            rows={3}
            spellcheck={false}
            placeholder="the template of the model's tokenizer"
            value={String(value ?? '')}
            onInput={({ currentTarget }) => set(currentTarget.value)}
          />
        )}
      </Labelled>
      {value === undefined && (
        <div class="filters">
          <button type="button" onClick={() => set(CHATML)}>
            Use ChatML
          </button>
        </div>
      )}
    </>
  );
}

function countsOf({
  format,
  bytes: size,
  num_documents,
  num_chats,
  num_preferences,
  num_labelled,
}: Dataset): string {
  const some = (number: number, noun: string) => number > 0 && `${count(number)} ${noun}`;
  return [
    format,
    bytes(size),
    format !== 'text' && some(num_documents, 'documents'),
    some(num_chats, 'chats'),
    some(num_preferences, 'preferences'),
    some(num_labelled, 'labelled completions'),
  ]
    .filter(Boolean)
    .join(' · ');
}

/** @param isPacked texts stay whole, if they fit into a sequence */
function Preview({ preview: { read, texts }, isPacked }: { preview: DataPreview; isPacked: boolean }) {
  if (read === null) return null;
  return (
    <>
      <dl class="figures">
        {figuresOf(read, isPacked).map(([name, value]) => (
          <div key={name} class="figure">
            <dt class="muted small">{name}</dt>
            <dd class="value">{value}</dd>
          </div>
        ))}
      </dl>
      <details>
        <summary>The first texts, as the model reads them</summary>
        {texts.map(({ parts, is_shortened, tokens }, index) => (
          <div key={index} class="read">
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
            <pre class="preview" tabIndex={0}>
              {parts.map(({ text, learned }, part) =>
                learned ? <mark key={part}>{text}</mark> : <span key={part}>{text}</span>,
              )}
              {is_shortened && '…'}
            </pre>
            <p class="small muted">{count(tokens)} tokens; what is marked is learned.</p>
          </div>
        ))}
      </details>
    </>
  );
}

function figuresOf(
  { share, texts, tokens, targets, long_texts }: NonNullable<DataPreview['read']>,
  isPacked: boolean,
): [string, string][] {
  const about = share < 1 ? 'about ' : '';
  const portionText = (part: number, whole: number) => (whole === 0 ? '–' : portion(part / whole));
  const figures: [string, string][] = [
    ['Read', share < 1 ? `the first ${portion(share)}` : 'all of it'],
    ['Tokens', about + count(Math.round(tokens / share))],
    ['Learned', portionText(targets, tokens)],
  ];
  if (!isPacked) return figures;
  return [
    ...figures,
    ['Texts', about + count(Math.round(texts / share))],
    ['Longer than a sequence', portionText(long_texts, texts)],
  ];
}
