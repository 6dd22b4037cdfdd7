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
  const beside = reader.has('rope_theta');
  const theta = reader.number('rope_theta', { ...THETA, fallback: defaultTheta });
  const inner = reader.section('rope_scaling', ['rope_parameters']);
  if (inner === null) return { rope_theta: theta, rope_scaling: null };
  const within = inner.has('rope_theta') ? inner.number('rope_theta', THETA) : theta;
  if (beside && within !== theta)
    inner.fail(
      'rope_theta',
      'model_field_conflict',
      `rope_theta is ${within} here and ${theta} at the top level`,
    );
  inner.only('partial_rotary_factor', [1], WHY_PARTIAL);
  return { rope_theta: within, rope_scaling: readScaling(inner, maxPositions) };
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
