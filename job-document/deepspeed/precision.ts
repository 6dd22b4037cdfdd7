import type { Precision } from '../../contracts/index.js';
import { keyError, type Setting, type Source, type Translated, unknownName } from './settings.js';

const FORMATS: readonly string[] = ['fp32', 'fp16', 'bf16'];
/** Names of the bf16 section, the new one first. */
const BF16_SECTIONS = ['bf16', 'bfloat16'];

/** Returns the training precision of the configuration, or else of the document. */
export function precisionOf(source: Source): Precision {
  const { own } = source;
  const wanted = enabledFormats(source)[0]?.format;
  if (wanted !== undefined) return wanted;
  if (own.train?.precision !== undefined) return own.train.precision;
  const bf16IsAuto = BF16_SECTIONS.some((name) => source.isAuto(`${name}.enabled`));
  const bf16IsOff = BF16_SECTIONS.some((name) => source.get(`${name}.enabled`) === false);
  // "auto" selects the document's default; without any key DeepSpeed computes in fp32.
  return bf16IsAuto || (source.isAuto('fp16.enabled') && !bf16IsOff) ? 'bf16' : 'fp32';
}

function enabledFormats(source: Source): { format: Precision; from: string }[] {
  const switches = [
    { format: 'fp16' as const, from: 'fp16.enabled' },
    ...BF16_SECTIONS.map((name) => ({ format: 'bf16' as const, from: `${name}.enabled` })),
  ];
  return switches.filter(({ from }) => source.get(from) === true);
}

export function translatePrecision(source: Source): Translated {
  const enabled = enabledFormats(source);
  const [first] = enabled;
  const other = enabled.find(({ format }) => format !== first?.format);
  if (other !== undefined) {
    const message = 'fp16 and bf16 cannot both be enabled';
    return { settings: [], errors: [keyError(other.from, 'deepspeed_conflict', message)] };
  }
  const precision = precisionOf(source);
  const denial = first === undefined ? switchedOff(source, precision) : undefined;
  if (denial !== undefined) {
    const message = `it is false, and /train/precision is ${precision}: set it in one place`;
    return { settings: [], errors: [keyError(denial, 'deepspeed_conflict', message)] };
  }
  const settings: Setting[] = [
    { field: '/train/precision', value: precision, ...(first && { from: first.from }) },
  ];
  const formats = translateFormats(source);
  const fp16 = precision === 'fp16' ? translateFp16(source) : { settings: [], errors: [] };
  // DeepSpeed sums in the model's format. In fp16 that decides which scales overflow.
  if (precision === 'fp16') settings.push({ field: '/zero/grad_accum_dtype', value: 'fp16' });
  return {
    settings: [...settings, ...formats.settings, ...fp16.settings],
    errors: [...formats.errors, ...fp16.errors],
  };
}

/** Returns the key that disables the format. */
function switchedOff(source: Source, precision: Precision): string | undefined {
  const names = precision === 'bf16' ? BF16_SECTIONS : precision === 'fp16' ? ['fp16'] : [];
  return names.map((name) => `${name}.enabled`).find((path) => source.get(path) === false);
}

/** Formats of the exchange and the sums of gradients. */
function translateFormats(source: Source): Translated {
  const pairs = [
    ['communication_data_type', '/zero/reduce_dtype'],
    ['data_types.grad_accum_dtype', '/zero/grad_accum_dtype'],
  ] as const;
  const all = source
    .direct(pairs)
    .map((setting) => ({ ...setting, value: String(setting.value).toLowerCase() }));
  return {
    settings: all.filter(({ value }) => FORMATS.includes(value)),
    errors: all.flatMap(({ value, from = '' }) =>
      FORMATS.includes(value) ? [] : [unknownName(from, value, FORMATS)],
    ),
  };
}

/** Translates the rest of the section `fp16`, which DeepSpeed reads only when it is enabled. */
function translateFp16(source: Source): Translated {
  const scale = source.get<number>('fp16.loss_scale');
  const settings: Setting[] = [];
  if (source.get('fp16.fp16_master_weights_and_grads') === true) {
    const from = 'fp16.fp16_master_weights_and_grads';
    settings.push({ field: '/zero/master_dtype', value: 'fp16', from });
    settings.push({ field: '/zero/grad_accum_dtype', value: 'fp16', from });
  }
  if (scale !== undefined && scale < 0) {
    return { settings, errors: [keyError('fp16.loss_scale', 'out_of_range', 'must be >= 0')] };
  }
  if (scale !== undefined && scale > 0) {
    const from = 'fp16.loss_scale';
    settings.push({ field: '/train/loss_scale/type', value: 'static', from });
    settings.push({ field: '/train/loss_scale/initial_scale', value: scale, from }, NEVER_FAILS);
    return { settings, errors: [] };
  }
  if (scale === 0)
    settings.push({ field: '/train/loss_scale/type', value: 'dynamic', from: 'fp16.loss_scale' });
  const power = source.get<number>('fp16.initial_scale_power');
  if (power !== undefined) {
    const from = 'fp16.initial_scale_power';
    settings.push({ field: '/train/loss_scale/initial_scale', value: 2 ** power, from });
  }
  settings.push(
    ...source.direct([
      ['fp16.loss_scale_window', '/train/loss_scale/window'],
      ['fp16.min_loss_scale', '/train/loss_scale/min_scale'],
    ]),
    ...translateHysteresis(source),
  );
  return { settings, errors: [] };
}

/** Without ZeRO, DeepSpeed's scaler has no hysteresis in spite of the keys, and never fails. */
function translateHysteresis(source: Source): Setting[] {
  const at = 'zero_optimization.stage';
  const stage = source.get(at) ?? source.own.zero?.stage ?? (source.isAuto(at) ? 1 : 0);
  if (stage === 0) return [{ field: '/train/loss_scale/hysteresis', value: 1 }, NEVER_FAILS];
  return source.direct([
    ['fp16.hysteresis', '/train/loss_scale/hysteresis'],
    ['fp16.consecutive_hysteresis', '/train/loss_scale/consecutive_hysteresis'],
  ]);
}

const NEVER_FAILS: Setting = { field: '/train/loss_scale/max_skipped_steps', value: null };
