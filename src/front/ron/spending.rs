//! How does a limit end serde's reading? Every value on the way is a step, and the first that is one too many
//! is an error like any other.
//!
//! One wrapper goes around whatever takes part: the deserializer, its visitors, and the seeds by which they
//! ask for what is inside. It passes everything on as it is, so that values, errors and places are those of
//! the format.

use crate::limits::{Limit, Limits};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};
use std::cell::OnceCell;
use std::fmt;
use std::marker::PhantomData;

/// What reading may spend, and which limit ended it.
pub(crate) struct Purse<'l> {
    pub limits: &'l Limits,
    pub reached: OnceCell<Limit>,
}

impl Purse<'_> {
    /// Reads a value as it reads itself, and spends.
    pub(crate) fn seed<'de, T: Deserialize<'de>>(&self) -> impl DeserializeSeed<'de, Value = T> {
        Spending { inner: PhantomData::<T>, purse: self }
    }
}

struct Spending<'a, T> {
    inner: T,
    purse: &'a Purse<'a>,
}

impl<'a, T> Spending<'a, T> {
    /// The same around something else.
    fn around<U>(&self, inner: U) -> Spending<'a, U> {
        Spending { inner, purse: self.purse }
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Spending<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        self.purse.limits.spend(1).map_err(|limit| {
            self.purse.reached.get_or_init(|| limit);
            D::Error::custom("a limit was reached")
        })?;
        let from = self.around(from);
        self.inner.deserialize(from)
    }
}

/// Methods that give one value, with nothing inside.
macro_rules! gives {
    ($($method:ident($($name:ident: $type:ty),*);)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, Self::Error> {
            self.inner.$method($($name,)* visitor)
        }
    )*};
}

/// Methods that give what may have values inside.
macro_rules! visits {
    ($($method:ident($($name:ident: $type:ty),*);)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, Self::Error> {
            let visitor = self.around(visitor);
            self.inner.$method($($name,)* visitor)
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Spending<'_, D> {
    type Error = D::Error;

    gives! {
        deserialize_bool(); deserialize_char(); deserialize_str(); deserialize_string();
        deserialize_i8(); deserialize_i16(); deserialize_i32(); deserialize_i64(); deserialize_i128();
        deserialize_u8(); deserialize_u16(); deserialize_u32(); deserialize_u64(); deserialize_u128();
        deserialize_f32(); deserialize_f64(); deserialize_bytes(); deserialize_byte_buf();
        deserialize_unit(); deserialize_unit_struct(name: &'static str); deserialize_identifier();
    }

    visits! {
        deserialize_any(); deserialize_ignored_any();
        deserialize_option(); deserialize_seq(); deserialize_map();
        deserialize_newtype_struct(name: &'static str);
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// Methods of visitors that take a value as it is.
macro_rules! takes {
    ($($method:ident($type:ty);)*) => {$(
        fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        }
    )*};
}

/// Methods of visitors that take what gives more values.
macro_rules! goes_on {
    ($($method:ident($access:ident);)*) => {$(
        fn $method<A: $access<'de>>(self, access: A) -> Result<V::Value, A::Error> {
            let access = self.around(access);
            self.inner.$method(access)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Spending<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.inner.expecting(f)
    }

    takes! {
        visit_bool(bool); visit_char(char); visit_str(&str); visit_borrowed_str(&'de str); visit_string(String);
        visit_i8(i8); visit_i16(i16); visit_i32(i32); visit_i64(i64); visit_i128(i128);
        visit_u8(u8); visit_u16(u16); visit_u32(u32); visit_u64(u64); visit_u128(u128);
        visit_f32(f32); visit_f64(f64);
        visit_bytes(&[u8]); visit_borrowed_bytes(&'de [u8]); visit_byte_buf(Vec<u8>);
    }

    goes_on! {
        visit_some(Deserializer); visit_newtype_struct(Deserializer);
        visit_seq(SeqAccess); visit_map(MapAccess); visit_enum(EnumAccess);
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Spending<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let seed = self.around(seed);
        self.inner.next_element_seed(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Spending<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.inner.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.around(seed);
        self.inner.next_value_seed(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'a, 'de, A: EnumAccess<'de>> EnumAccess<'de> for Spending<'a, A> {
    type Error = A::Error;
    type Variant = Spending<'a, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let purse = self.purse;
        self.inner.variant_seed(seed).map(|(name, inner)| (name, Spending { inner, purse }))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Spending<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.around(seed);
        self.inner.newtype_variant_seed(seed)
    }

    visits! {
        tuple_variant(len: usize);
        struct_variant(fields: &'static [&'static str]);
    }
}
