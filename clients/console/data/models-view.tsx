import type { Model } from '../../../contracts/types.js';
import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { linkTo } from '../app/router.js';
import { may } from '../app/session.js';
import { Empty } from '../parts/empty.js';
import { bytes, compact, count, dateTime } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { ListView } from './list-view.js';
import { RecordView } from './record-view.js';
import { TrainedModels } from './trained-models.js';
import { type Report, uploadModel } from './upload.js';

const kindOf = ({ model_type, adapter }: Model) =>
  model_type === null
    ? 'tokenizer'
    : adapter === undefined
      ? model_type
      : `${adapter.type} over ${model_type}`;

const COLUMNS = [
  ['Kind', kindOf],
  ['Parameters', ({ num_parameters }: Model) => compact(num_parameters)],
  ['Weights', ({ dtypes }: Model) => dtypes.join(', ')],
  ['Size', (model: Model) => bytes(model.bytes)],
  ['Tokenizer', ({ has_tokenizer }: Model) => (has_tokenizer ? 'yes' : 'no')],
] as const;

/** The name of an archive, or of the first model. */
const nameOf = (files: readonly File[]) =>
  files.length === 1 && files[0] ? files[0].name.replace(/\.tar$/, '') : 'uploaded model';

const DROP = {
  label: 'Upload a model',
  hint: 'Drop the files of its Hugging Face folder here, or a .tar of them.',
  send: (files: readonly File[], report: Report, signal: AbortSignal) =>
    uploadModel(files, nameOf(files), report, signal),
};

export function ModelsView() {
  return (
    <>
      <ListView
        title="Models"
        page="models"
        list={() => client.models.list({ limit: 100 })}
        columns={COLUMNS}
        drop={DROP}
        empty={
          <Empty title="No model yet.">
            <p>A run can begin with a model that was uploaded; without one it begins with random weights.</p>
          </Empty>
        }
      />
      {may('jobs:read') && <TrainedModels />}
    </>
  );
}

export function ModelView({ id }: { id: string }) {
  const { value, fault } = useLoaded(() => client.models.get(id), [id]);
  const model = value.value;
  if (model === null) return fault.value && <Notice fault={fault.value} />;
  return (
    <RecordView
      record={model}
      page="models"
      facts={factsOf(model)}
      train={model.model_type === null ? undefined : linkTo(['new'], { model: id })}
      remove={() => client.models.delete(id)}
    >
      <section class="card" aria-label="Files">
        <h2>Files</h2>
        <ul class="files">
          {model.files.map((file) => (
            <li key={file.name}>
              {file.name} <span class="muted">{bytes(file.bytes)}</span>
            </li>
          ))}
        </ul>
        <details>
          <summary>config.json</summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls */}
          <pre class="preview" tabIndex={0}>
            {JSON.stringify(model.config, null, 2)}
          </pre>
        </details>
      </section>
    </RecordView>
  );
}

const listed = (names: readonly string[] | undefined) => (names?.length ? names.join(', ') : null);

const factsOf = (model: Model): [string, string | null][] => [
  ['Kind', kindOf(model)],
  ['Parameters', count(model.num_parameters)],
  ['Weights', listed(model.dtypes)],
  ['Size', bytes(model.bytes)],
  ['Vocabulary', model.tokenizer === null ? null : count(model.tokenizer.vocab_size)],
  ['Chat template', model.tokenizer?.chat_template ? 'yes' : null],
  ['Unread tokenizer', listed(model.unread_tokenizer)],
  ['Base', model.base ?? null],
  ['Optimizer steps', model.optimizer_steps === undefined ? null : count(model.optimizer_steps)],
  ['Ignored files', listed(model.ignored_files)],
  ['Source', model.source?.uri ?? null],
  ['Digest', model.digest],
  ['Created', dateTime(model.created_at)],
];
