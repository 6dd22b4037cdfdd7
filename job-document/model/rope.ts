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
const FACTORS = { above: 0, below: 1e6 };
const ORIGINAL = { min: 1, max: 1 << 24 };
const ATTENTION_FACTOR = { above: 0, below: 1000 };
const TYPES = {
  default: 'default',
  linear: 'linear',
  llama3: 'llama3',
  yarn: 'yarn',
  longrope: 'longrope',
} as const;
const WHY_TYPES = 'Frequencies that grow with the longest sequence of a batch are not supported.';
const WHY_PARTIAL = 'rotary positions apply to every element of a head';

/**
 * Reads both spellings: transformers 4 has `rope_theta` beside `rope_scaling`; transformers 5 has both in
 * `rope_parameters`.
 */
export function readRope(
  reader: ConfigReader,
  defaultTheta: number,
  maxPositions: number,
  headDim: number,
): RopeConfig {
  reader.only('partial_rotary_factor', [1], WHY_PARTIAL);
  const inner = reader.section('rope_scaling', ['rope_parameters']);
  const theta = readTheta(reader, inner, defaultTheta);
  inner?.only('partial_rotary_factor', [1], WHY_PARTIAL);
  return { rope_theta: theta, rope_scaling: inner && readScaling(inner, maxPositions, headDim) };
}

/** Reads the same of a family that rotates a part of each head. @param share the part by default */
export function readPartialRope(
  reader: ConfigReader,
  defaults: { rope_theta: number; share: number },
  maxPositions: number,
  headDim: number,
): RopeConfig & { partial_rotary_factor: number } {
  const section = reader.section('rope_scaling', ['rope_parameters']);
  const { share, rotaryDim } = readRotaryShare(reader, section, headDim, defaults.share);
  return {
    rope_theta: readTheta(reader, section, defaults.rope_theta),
    rope_scaling: section && readScaling(section, maxPositions, rotaryDim),
    partial_rotary_factor: share,
  };
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

/** Reads a base of rotary frequencies, `name` beside their section or `rope_theta` within it. */
export function readTheta(
  reader: ConfigReader,
  section: ConfigReader | null,
  fallback: number,
  name = 'rope_theta',
): number {
  return readInEither(reader, section, { within: 'rope_theta', beside: name }, { ...THETA, fallback });
}

/**
 * Reads the share of a head's elements that are rotated, beside or within the section of rotary positions.
 * @param name of the field beside the section
 * @returns also the number of these elements
 */
export function readRotaryShare(
  reader: ConfigReader,
  section: ConfigReader | null,
  headDim: number,
  fallback: number,
  name = 'partial_rotary_factor',
): { share: number; rotaryDim: number } {
  const options = { above: 0, max: 1, fallback, isWrittenBeside: true };
  const names = { within: 'partial_rotary_factor', beside: name };
  const share = readInEither(reader, section, names, options);
  const rotaryDim = rotatedElements(headDim, share);
  if ((rotaryDim < 2 || rotaryDim % 2 !== 0) && reader.isSound('head_dim', name))
    reader.fail(
      name,
      'model_field_unsupported',
      `rotates ${rotaryDim} of the ${headDim} elements of a head; it must rotate an even number of at least 2`,
    );
  return { share, rotaryDim };
}

export function rotatedElements(headDim: number, share: number): number {
  return Math.trunc(headDim * share);
}

/**
 * transformers 4 has a field beside the section of rotary positions, transformers 5 within it.
 *
 * @param options isWrittenBeside: transformers 5 writes the default beside the section, whatever is within it
 */
function readInEither(
  reader: ConfigReader,
  section: ConfigReader | null,
  names: { within: string; beside: string },
  options: { fallback: number; isWrittenBeside?: boolean } & Parameters<ConfigReader['number']>[1],
): number {
  const beside = reader.number(names.beside, options);
  if (!section?.has(names.within)) return beside;
  const within = section.number(names.within, options);
  const isGiven = reader.has(names.beside) && !(options.isWrittenBeside && beside === options.fallback);
  if (isGiven && within !== beside)
    section.fail(
      names.within,
      'model_field_conflict',
      `${names.within} is ${within} here, and ${names.beside} is ${beside} at the top level`,
    );
  return within;
}

export function readScaling(reader: ConfigReader, maxPositions: number, headDim: number): RopeScaling | null {
  const numErrors = reader.errors.length;
  const ropeType = reader.choice('rope_type', {
    aliases: ['type'],
    values: TYPES,
    fallback: 'default',
    why: WHY_TYPES,
  });
  // The type determines the allowed fields.
  if (reader.errors.length > numErrors) return null;
  const scaling = ropeType === 'default' ? null : readType(reader, ropeType, maxPositions, headDim);
  reader.finish();
  return scaling;
}

function readType(
  reader: ConfigReader,
  ropeType: RopeScaling['rope_type'],
  maxPositions: number,
  headDim: number,
): RopeScaling {
  if (ropeType === 'longrope') {
    const original = reader.integer('original_max_position_embeddings', {
      ...ORIGINAL,
      min: 2,
      fallback: maxPositions,
      fallbackText: 'max_position_embeddings',
    });
    const { factor = longropeFactor(maxPositions, original), ...rest } = readLongrope(reader, headDim);
    return { rope_type: ropeType, factor, original_max_position_embeddings: original, ...rest };
  }
  const factor = reader.number('factor', FACTOR);
  if (ropeType === 'linear') return { rope_type: ropeType, factor };
  const originalMaxPositionEmbeddings = reader.integer('original_max_position_embeddings', {
    ...ORIGINAL,
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
    attention_factor: reader.optionalNumber('attention_factor', ATTENTION_FACTOR),
    mscale: reader.optionalNumber('mscale', { min: 0, max: 1e6 }),
    mscale_all_dim: reader.optionalNumber('mscale_all_dim', { min: 0, max: 1e6 }),
  };
  reader.ignore(['finetuned']);
  return {
    beta_fast: betaFast,
    beta_slow: betaSlow,
    truncate: reader.flag('truncate', true),
    ...defined(given),
  };
}

/** Reads factors of `longrope` for the pairs of `rotaryDim` elements. */
export function readLongrope(reader: ConfigReader, rotaryDim: number) {
  const factors = (name: string) => reader.numbers(name, rotaryDim / 2, FACTORS);
  return {
    short_factor: factors('short_factor'),
    long_factor: factors('long_factor'),
    ...defined({
      factor: reader.optionalNumber('factor', FACTOR),
      attention_factor: reader.optionalNumber('attention_factor', ATTENTION_FACTOR),
    }),
  };
}

/** Returns the default of `factor`; below 1 it would have no effect. */
export function longropeFactor(maxPositions: number, original: number): number {
  return Math.max(1, maxPositions / original);
}

function defined<Name extends string>(values: Record<Name, number | undefined>) {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as Partial<Record<Name, number>>;
}

export function scalingParams(scaling: RopeScaling | null): RopeScalingParams {
  if (scaling === null) return LLAMA_TRAITS.rope_scaling;
  const { rope_type, ...params } = scaling;
  return { ...LLAMA_TRAITS.rope_scaling, ...params, type: rope_type };
}
