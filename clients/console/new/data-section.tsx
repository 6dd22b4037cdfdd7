import { stemOfName } from '../../../contracts/dataset-names.js';
import type { DataPreview, Dataset } from '../../../contracts/types.js';
import { useLoaded } from '../app/loaded.js';
import { may } from '../app/session.js';
import { beginningOf } from '../data/beginning.js';
import { Drop } from '../data/drop.js';
import { type Report, uploadDataset } from '../data/upload.js';
import { bytes, count, portion } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { objectiveOf, valueAt, withValue } from './draft.js';
import { PATHS, VALIDATION } from './fields.js';
import { Choice, DefaultedChoice, NumberInput, TextAreaInput, useForm } from './inputs.js';
import { formOf, promptsOf } from './read-as.js';
import { withData } from './sample-prompts.js';

interface DataSectionProps {
  datasets: readonly Dataset[];
  onUpload: (dataset: Dataset) => void;
}

/** Step 1: the data, and what was read of them. */
export function DataSection({ datasets, onUpload }: DataSectionProps) {
  const { draft, plan } = useForm();
  const id = String(valueAt(draft.value, PATHS.dataset) ?? '');
  const dataset = datasets.find((one) => one.id === id);
  const choose = (chosen: Dataset) => {
    const named = withData(draft.value, chosen);
    const given = valueAt(named, PATHS.name);
    // A run is named after its data until it gets another name.
    const isOwn = given !== undefined && given !== (dataset && stemOfName(dataset.name));
    draft.value = isOwn ? named : withValue(named, PATHS.name, stemOfName(chosen.name));
  };
  const send = async ([file]: readonly File[], report: Report, signal: AbortSignal) => {
    if (file === undefined) return;
    // The run must not use the former data if this file is refused.
    draft.value = withValue(draft.value, PATHS.dataset, undefined);
    const uploaded = await uploadDataset(file, report, signal);
    onUpload(uploaded);
    choose(uploaded);
  };
  const hasChats = dataset !== undefined && dataset.num_chats > 0;
  const isSampled = objectiveOf(draft.value) === 'grpo';
  const mixture = valueAt(draft.value, ['data', 'mixture']);
  return (
    <section class="card part" aria-labelledby="new-data">
      <h2 id="new-data">Data</h2>
      {may('datasets') && (
        <Drop
          label="Upload data"
          hint="Drop a file here: chats, instructions, preferences or prompts as .jsonl, .json, .csv or .parquet; text; .tokens or .bin."
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
        {!isSampled && VALIDATION.map((field) => <NumberInput key={field.label} {...field} />)}
        {hasChats && !isSampled && (
          <DefaultedChoice path={PATHS.packing} label="Packing" values={['split', 'whole', 'fit']} />
        )}
      </div>
      {dataset && <p class="small muted">{countsOf(dataset)}</p>}
      {dataset && <ReadAs key={dataset.id} dataset={dataset} isSampled={isSampled} />}
      {Array.isArray(mixture) && (
        <p class="small muted">{`A mixture of ${mixture.length} datasets. A chosen dataset replaces it.`}</p>
      )}
      {hasChats && (
        <TextAreaInput
          path={PATHS.template}
          label="Chat template (Jinja)"
          rows={3}
          placeholder="that of the base; ChatML if it has none"
        />
      )}
      {plan.previewFault.value && <Notice fault={plan.previewFault.value} />}
      {plan.preview.value && (
        <Preview preview={plan.preview.value} isPacked={plan.resolved.value?.data.packing !== 'split'} />
      )}
    </section>
  );
}

/** What the fields of the lines become. @param isSampled the model answers the prompts, and graders read all fields */
function ReadAs({ dataset, isSampled }: { dataset: Dataset; isSampled: boolean }) {
  const { value } = useLoaded((signal) => beginningOf(dataset, signal), [dataset.id]);
  const form = dataset.format === 'jsonl' && value.value !== null ? formOf(value.value) : null;
  if (form === null) return null;
  const { kind, fields, ignored } = isSampled ? promptsOf(form) : form;
  return (
    <p class="small">
      Read as <strong>{kind}</strong>:{' '}
      {fields.map(({ name, becomes }, index) => (
        <span key={name}>
          {index > 0 && ', '}
          <code>{name}</code> → {becomes}
        </span>
      ))}
      .{ignored.length > 0 && <span class="muted"> Ignored: {ignored.join(', ')}.</span>}
    </p>
  );
}

function countsOf({
  format,
  bytes: size,
  num_documents,
  num_chats,
  num_preferences,
  num_labelled,
  num_prompts,
}: Dataset): string {
  const some = (number: number, noun: string) => number > 0 && `${count(number)} ${noun}`;
  return [
    format,
    bytes(size),
    format !== 'text' && some(num_documents, 'documents'),
    some(num_chats, 'chats'),
    some(num_preferences, 'preferences'),
    some(num_labelled, 'labelled completions'),
    some(num_prompts, 'prompts'),
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
