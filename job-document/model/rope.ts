/** Rotary positions of a `config.json`, in the spellings of transformers 4 and 5. */
import { LLAMA_TRAITS, type RopeScalingParams } from '../../contracts/architecture.js';
import type { RopeScaling } from '../../contracts/index.js';
import type { ConfigReader } from './reader.js';

export interface RopeConfig {
  rope_theta: number;
  rope_scaling: RopeScaling | null;
}

const THETA = { above: 1, below: 1e15 };
const FACTOR = { min: 1, below: 1e6 };
const TYPES = { default: 'default', linear: 'linear', llama3: 'llama3', yarn: 'yarn' } as const;
const WHY_TYPES = 'Frequencies that depend on the sequence length, and lists of factors, are not supported.';
const WHY_PARTIAL = 'rotary positions apply to every element of a head';

/**
 * Reads both spellings: transformers 4 has `rope_theta` beside `rope_scaling`; transformers 5 has both in
 * `rope_parameters`.
 */
export function readRope(reader: ConfigReader, defaultTheta: number, maxPositions: number): RopeConfig {
  reader.only('partial_rotary_factor', [1], WHY_PARTIAL);
  const inner = reader.section('rope_scaling', ['rope_parameters']);
  const theta = readTheta(reader, 'rope_theta', defaultTheta, inner);
  if (inner === null) return { rope_theta: theta, rope_scaling: null };
  inner.only('partial_rotary_factor', [1], WHY_PARTIAL);
  return { rope_theta: theta, rope_scaling: readScaling(inner, maxPositions) };
}

/** Reads a base of rotary frequencies, which `inner` may have as its `rope_theta` instead. */
export function readTheta(
  reader: ConfigReader,
  name: string,
  fallback: number,
  inner: ConfigReader | null = null,
): number {
  const beside = reader.has(name);
  const theta = reader.number(name, { ...THETA, fallback });
  if (!inner?.has('rope_theta')) return theta;
  const within = inner.number('rope_theta', THETA);
  if (beside && within !== theta)
    inner.fail(
      'rope_theta',
      'model_field_conflict',
      `rope_theta is ${within} here, and ${name} is ${theta} at the top level`,
    );
  return within;
}

/** Objects of `rope_parameters` for layers without and with a window. */
interface RopesOfTypes {
  full: ConfigReader | null;
  sliding: ConfigReader | null;
}

/** Reads transformers 5's spelling of positions that differ by type of layer; null in another spelling. */
export function ropesOfTypes(reader: ConfigReader): RopesOfTypes | null {
  const types = reader.has('rope_scaling') ? null : reader.section('rope_parameters');
  if (!types?.has('full_attention')) return null;
  const [full, sliding] = [types.section('full_attention'), types.section('sliding_attention')];
  types.ignore(['full_attention', 'sliding_attention']);
  types.finish();
  sliding?.only('rope_type', ['default'], 'frequencies of sliding layers are not scaled');
  return { full, sliding };
}

export function readScaling(reader: ConfigReader, maxPositions: number): RopeScaling | null {
  const numErrors = reader.errors.length;
  const ropeType = reader.choice('rope_type', {
    aliases: ['type'],
    values: TYPES,
    fallback: 'default',
    why: WHY_TYPES,
  });
  // The type determines the allowed fields.
  if (reader.errors.length > numErrors) return null;
  const scaling = ropeType === 'default' ? null : readType(reader, ropeType, maxPositions);
  reader.finish();
  return scaling;
}

function readType(
  reader: ConfigReader,
  ropeType: RopeScaling['rope_type'],
  maxPositions: number,
): RopeScaling {
  const factor = reader.number('factor', FACTOR);
  if (ropeType === 'linear') return { rope_type: ropeType, factor };
  const originalMaxPositionEmbeddings = reader.integer('original_max_position_embeddings', {
    min: 1,
    max: 1 << 24,
    fallback: maxPositions,
    fallbackText: 'max_position_embeddings',
  });
  return ropeType === 'llama3'
    ? {
        rope_type: ropeType,
        factor,
        original_max_position_embeddings: originalMaxPositionEmbeddings,
        ...readLlama3(reader),
      }
    : {
        rope_type: ropeType,
        factor,
        original_max_position_embeddings: originalMaxPositionEmbeddings,
        ...readYarn(reader),
      };
}

function readLlama3(reader: ConfigReader) {
  const lowFreqFactor = reader.number('low_freq_factor', { above: 0, max: 1e6 });
  const highFreqFactor = reader.number('high_freq_factor', { above: 0, max: 1e6 });
  if (highFreqFactor <= lowFreqFactor)
    reader.fail('high_freq_factor', 'out_of_range', `must be above low_freq_factor, ${lowFreqFactor}`);
  return { low_freq_factor: lowFreqFactor, high_freq_factor: highFreqFactor };
}

function readYarn(reader: ConfigReader) {
  const betaFast = reader.number('beta_fast', { above: 0, max: 1e6, fallback: 32 });
  const betaSlow = reader.number('beta_slow', { above: 0, max: 1e6, fallback: 1 });
  if (betaFast <= betaSlow) reader.fail('beta_fast', 'out_of_range', `must be above beta_slow, ${betaSlow}`);
  const given = {
    attention_factor: reader.optionalNumber('attention_factor', { above: 0, below: 1000 }),
    mscale: reader.optionalNumber('mscale', { min: 0, max: 1e6 }),
    mscale_all_dim: reader.optionalNumber('mscale_all_dim', { min: 0, max: 1e6 }),
  };
  reader.ignore(['finetuned']);
  return {
    beta_fast: betaFast,
    beta_slow: betaSlow,
    truncate: reader.flag('truncate', true),
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
  };
}

export function scalingParams(scaling: RopeScaling | null): RopeScalingParams {
  if (scaling === null) return LLAMA_TRAITS.rope_scaling;
  const { rope_type, ...params } = scaling;
  return { ...LLAMA_TRAITS.rope_scaling, ...params, type: rope_type };
}
