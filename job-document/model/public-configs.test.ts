/**
 * Published `config.json` files of these and other families: accepted, or refused with the errors of the
 * table. Each was compared with the file of its `source`, field by field. These are copies in public
 * repositories, some of them of tuned models; none was read from Hugging Face itself.
 */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { published, SOURCE } from '../testing/published.js';
import { importConfig } from './import.js';

const TABLE = published(readFileSync('job-document/testing/public-models.json', 'utf8'));
const errorsOf = (config: Record<string, unknown>) =>
  importConfig(config).errors.map(({ pointer, code }) => `${pointer} ${code}`);

for (const [name, { source, config, errors }] of Object.entries(TABLE))
  t.test(name, async (t) => {
    t.match(source, SOURCE);
    t.strictSame(errorsOf(config), errors);
  });

t.test('the table has configurations of the families, and of others', async (t) => {
  const accepted = Object.values(TABLE).filter(({ errors }) => errors.length === 0);
  t.ok(accepted.length >= 40);
  const families = new Set(accepted.map(({ config }) => config.model_type));
  // Not all have a copy in a public repository that could be named as the source.
  t.ok(families.size >= 7);
});

const SIZES = {
  model_type: 'llama',
  hidden_size: 64,
  intermediate_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  vocab_size: 256,
};
const imported = (fields: object) => {
  const { errors, warnings, config } = importConfig({ ...SIZES, ...fields });
  t.strictSame(errors, []);
  return { config, warned: warnings.map(({ pointer, code }) => `${pointer} ${code}`) };
};

t.test('private fields of transformers begin with an underscore and have no meaning', async (t) => {
  const own = {
    _attn_implementation_internal: 'sdpa',
    _flash_attn_2_enabled: true,
    _experts_implementation: 'eager',
  };
  t.strictSame(imported(own), imported({}));
});

t.test('fields about the origin or the execution cause no warning', async (t) => {
  const fields = {
    architectures: ['LlamaForCausalLM'],
    unsloth_version: '2026.4.5',
    unsloth_fixed: true,
    attn_implementation: 'eager',
    use_xformers: true,
    sequence_parallel_enabled: true,
    use_mrope: false,
    rope_interleaved: false,
    pretraining_tp: 1,
  };
  t.strictSame(imported(fields), imported({}));
});

t.test('a warning names fields that have no effect although one could expect it', async (t) => {
  const fields = {
    architectures: ['LlamaForSequenceClassification'],
    pretraining_tp: 2,
    max_sequence_length: 4096,
    max_window_layers: 1,
  };
  const { config, warned } = imported(fields);
  t.strictSame(config, imported({}).config);
  t.strictSame(
    warned,
    ['architectures', 'max_sequence_length', 'pretraining_tp'].map((name) => `/${name} field_without_effect`),
  );
});
